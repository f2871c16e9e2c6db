/** Thrown by {@link assert} alone: the program itself is wrong, no input can be blamed for it. */
export class AssertionError extends Error {
  override readonly name = "AssertionError";
}

/**
 * States what the program relies on. A failure is a bug of ours, never bad input: bad input gets a typed refusal.
 *
 * @throws AssertionError when the condition does not hold.
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}
