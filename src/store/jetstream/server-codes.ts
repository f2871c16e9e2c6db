/**
 * The codes of the server's errors that are told apart; every other one means no more than "no". What each proves
 * about a commit stands where it is used, in attempt.ts.
 */
export const serverCode = {
  wrongLastSequence: 10071,
  /** Another write of the key is under way, or a deposed leader believes so. */
  wrongLastSequenceUnnamed: 10164,
  duplicateInProcess: 10158,
  batchHoldsDuplicate: 10201,
  batchIncomplete: 10176,
  streamNotFound: 10059,
  streamNameInUse: 10058,
  consumerNotFound: 10014,
  messageNotFound: 10037,
  apiLevelMissing: 10185,
} as const;

/** Codes that blame the commit's own shape or size, whoever answers: no server of this configuration ever stores it. */
export const shapeCodes: ReadonlySet<number> = new Set([
  10054, // message too large
  10097, // header block too large
  10111, // roll-up not permitted
  10165, // TTL invalid
  10166, // TTL disabled
  10174, // atomic batches disabled
  10175, // batch sequence missing
  10177, // header not supported in a batch
  10179, // batch id invalid
  10193, // assertion without a revision
  10199, // batch too large
  10200, // batch commit invalid
]);

/** An error as JetStream answers it. */
export interface ServerError {
  /** Like an HTTP status. */
  readonly code: number;
  readonly err_code: number;
  readonly description: string;
}
