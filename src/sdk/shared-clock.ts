/**
 * Milliseconds that never step and that all threads of this process read alike (`performance.now()` counts from each
 * thread's own start).
 */
export const sharedMonotonicMs = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;
