import type { Random } from "../../base/random.ts";

/** From … to, both included, ms. */
export type Range = readonly [number, number];

/**
 * What goes wrong between one client and the log. Numbers without a unit are probabilities from 0 to 1, drawn anew for
 * each request, reply or entry. All may be changed while the client runs.
 */
export interface Faults {
  /** How long a request, and again its reply, is on its way. */
  readonly delayMs: Range;
  /** The request never arrives. */
  readonly requestLost: number;
  /** The request arrives `lateMs` after it was sent, by when its sender has usually given it up. */
  readonly requestLate: number;
  readonly lateMs: Range;
  /** The request took effect; its answer never arrives. */
  readonly replyLost: number;
  readonly replyDuplicated: number;
  /** A commit is refused with no newer revision as proof; in three of four cases it has landed. */
  readonly falseRefusal: number;
  /** A read that does not ask for a fresh answer gets one from the past. */
  readonly staleRead: number;
  /** How long a committed entry is on its way to a follower. */
  readonly followDelayMs: Range;
  /** An entry on its way to a follower, and all after it, is lost; the follower finds out and mends it. */
  readonly followLost: number;
  /** When delivery is mended, it begins from scratch. */
  readonly followReset: number;
  /** An entry overtakes entries of other keys on its way to a follower, against the order of revisions. */
  readonly followReorder: number;
}

/** Everything arrives at once. */
export const noFaults: Faults = {
  delayMs: [0, 0],
  requestLost: 0,
  requestLate: 0,
  lateMs: [2000, 9000],
  replyLost: 0,
  replyDuplicated: 0,
  falseRefusal: 0,
  staleRead: 0,
  followDelayMs: [0, 0],
  followLost: 0,
  followReset: 0,
  followReorder: 0,
};

/** A healthy network: it only takes its time. */
export const calmFaults: Faults = { ...noFaults, delayMs: [1, 4], followDelayMs: [1, 8] };

/** A bad day: everything happens, and most calls still get through. */
export const roughFaults: Faults = {
  delayMs: [0, 40],
  requestLost: 0.03,
  requestLate: 0.03,
  lateMs: [500, 9000],
  replyLost: 0.05,
  replyDuplicated: 0.05,
  falseRefusal: 0.05,
  staleRead: 0.2,
  followDelayMs: [0, 400],
  followLost: 0.01,
  followReset: 0.3,
  followReorder: 0,
};

export const chance = (random: Random, probability: number): boolean => probability > 0 && random() < probability;

export const drawMs = (random: Random, [from, to]: Range): number =>
  to <= from ? from : from + Math.floor(random() * (to - from + 1));
