/** What a deployment may set about the rules; the rest of them is fixed. Sizes in bytes of UTF-8 JSON text. */
export interface WorkloadRules {
  /** Object keys that are refused wherever they stand, lower case (contract 1.12). */
  readonly secretKeys: readonly string[];
  /** Beginnings of strings that are refused (contract 1.12). */
  readonly secretPrefixes: readonly string[];
  /** A payload up to this size stands in the record; a larger one is kept beside it (contract 5.2). */
  readonly inlineBytesMax: number;
  /** All checkpoint states that stand in a record together; what is beyond is kept beside it. */
  readonly inlineCheckpointBytesMax: number;
  /** The largest payload (contract 5.2). */
  readonly payloadBytesMax: number;
  /** Input and all checkpoints of a workload together: a worker gets them in one message. */
  readonly contextBytesMax: number;
  /** How many checkpoints a workload may have over its life. */
  readonly checkpointsMax: number;
  /** Longest error text that is kept, in UTF-16 units; the rest is cut and said so. */
  readonly errorLengthMax: number;
}

/** How the tokens of grants begin that this program signs: their header's first members, as base64url has them. */
const GRANT_TOKEN_PREFIX = "eyJhbGciOiJFZERTQSIsImtpZCI6";

export const defaultRules: WorkloadRules = {
  secretKeys: ["password", "secret", "token", "api_key", "private_key"],
  secretPrefixes: ["sk-", "fdb_live_", "mandate_live_", GRANT_TOKEN_PREFIX],
  inlineBytesMax: 4096,
  inlineCheckpointBytesMax: 32_768,
  payloadBytesMax: 4 * 1024 * 1024,
  contextBytesMax: 8 * 1024 * 1024,
  checkpointsMax: 1000,
  errorLengthMax: 4096,
};
