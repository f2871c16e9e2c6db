/** Bounds of what a request may hold. Sizes of text in bytes of UTF-8 unless said otherwise. */

/** Longest identifier. */
export const IDENTIFIER_BYTES_MAX = 512;
/** Most items of a set such as capabilities, artifacts or dependencies. */
export const SET_SIZE_MAX = 256;
/** Longest free text such as a trigger or a reason. */
export const TEXT_BYTES_MAX = 65_536;
/** Most attempts that a policy may grant; with it the history is bounded. */
export const ATTEMPTS_MAX = 100;
/** Longest lease, ms: seven days. */
export const LEASE_MS_MAX = 604_800_000;
/** Longest long poll, ms. */
export const WAIT_MS_MAX = 60_000;
/** Most requests of one batch (contract 1.7). */
export const BATCH_SIZE_MAX = 1000;
/** Most workloads of one page (contract 6.2). */
export const PAGE_SIZE_MAX = 1000;
/** Most workloads that one claimNext may hand out. */
export const CLAIMS_MAX = 100;
/** Largest body that a transport reads (contract 6.2). */
export const BODY_BYTES_MAX = 8 * 1024 * 1024;
