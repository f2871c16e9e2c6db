/** The outcome of something that may be refused: a value, or the reason as data. */
export type Result<Value, Problem> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: Problem };

/** Wraps a value as a success. */
export const ok = <Value>(value: Value): { readonly ok: true; readonly value: Value } => ({
  ok: true,
  value,
});

/** Wraps a reason as a refusal. */
export const err = <Problem>(error: Problem): { readonly ok: false; readonly error: Problem } => ({
  ok: false,
  error,
});
