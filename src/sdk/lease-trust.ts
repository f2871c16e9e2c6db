/**
 * How long a holder may trust a lease (contract 6.4). The authority counts a lease from the moment it commits it, which
 * is never before the request was sent: so until `requestSentAt + leaseMs` nobody else can hold the work. The margin
 * covers what the two clocks may drift apart in that time and the moment it takes to stop.
 */

const MARGIN_SHARE = 0.1;
const MARGIN_MIN_MS = 20;
const MARGIN_MAX_MS = 2_000;

/** The margin of a lease, ms: a tenth, but 20 ms to 2 s. */
export const marginOf = (leaseMs: number): number =>
  Math.min(MARGIN_MAX_MS, Math.max(MARGIN_MIN_MS, leaseMs * MARGIN_SHARE));

/** Until when a lease is trusted that was granted in answer to a request sent at `sentAt`; both of the shared clock. */
export const trustedUntilOf = (sentAt: number, leaseMs: number): number => sentAt + leaseMs - marginOf(leaseMs);

/** When it is to be renewed: a third of its length after the request. */
export const renewalDueOf = (sentAt: number, leaseMs: number): number => sentAt + leaseMs / 3;

const microsecondsOf = (ms: number): bigint => BigInt(Math.round(ms * 1_000));

/** Times of several threads in one piece of shared memory, a place for each lease. */
export class TrustTable {
  readonly buffer: SharedArrayBuffer;
  readonly #places: BigInt64Array;

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#places = new BigInt64Array(buffer);
  }

  static create(places: number): TrustTable {
    return new TrustTable(new SharedArrayBuffer(places * BigInt64Array.BYTES_PER_ELEMENT));
  }

  /** Until when the lease of that place is trusted, ms of the shared clock; in the past when it is lost. */
  read(place: number): number {
    return Number(Atomics.load(this.#places, place)) / 1_000;
  }

  write(place: number, trustedUntil: number): void {
    Atomics.store(this.#places, place, microsecondsOf(trustedUntil));
  }

  /** Writes unless somebody has written since the place read `known`: it may be another lease's by now. */
  replace(place: number, known: number, trustedUntil: number): void {
    Atomics.compareExchange(this.#places, place, microsecondsOf(known), microsecondsOf(trustedUntil));
  }
}
