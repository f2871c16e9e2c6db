/** Bounds of the HTTP door. Every member has a default. */
export interface HttpConfig {
  /** Most requests that this node works on at a time; more are refused with 429. */
  readonly inFlightMax: number;
  /** Most requests that wait for a result at a time. */
  readonly waitersMax: number;
  /** Most open event streams. */
  readonly eventStreamsMax: number;
  /** Most events that are kept for a client that reads slower than they happen; beyond it, it is cut off. */
  readonly eventBacklogMax: number;
  /** Longest silence on an event stream, ms. */
  readonly keepAliveMs: number;
  /** How long a request waits for the revision that it asks for, ms (contract 6.2). */
  readonly minRevisionWaitMs: number;
}

export const defaultHttpConfig: HttpConfig = {
  inFlightMax: 1024,
  waitersMax: 4096,
  eventStreamsMax: 256,
  eventBacklogMax: 10_000,
  keepAliveMs: 15_000,
  minRevisionWaitMs: 2_000,
};
