/**
 * Goal: the fate of a commit is told as far as it can be known, and no further.
 * Method: the machine is fed replies and snapshots by hand; what it asks for next, and what it answers, is compared.
 */
import { describe, expect, it } from "vitest";
import { Resolution } from "../../src/store/resolution.ts";
import type { ResolutionStep } from "../../src/store/resolution.ts";
import { OPERATION_RING } from "../../src/store/store.ts";
import type { Commit, Entry } from "../../src/store/store.ts";

const value = new Uint8Array();
const entryOf = (key: string, revision: number, operations: readonly string[]): Entry => ({
  key,
  value,
  revision,
  operations,
  at: 0,
  provenance: {},
});
const snapshot = (...entries: Entry[]): ReadonlyMap<string, Entry> =>
  new Map(entries.map((entry) => [entry.key, entry]));

const base = { revision: 10, operations: ["before"] };
const single: Commit = { operationId: "ours", puts: [{ key: "w.a", value, base }] };
const double: Commit = {
  operationId: "ours",
  puts: [
    { key: "w.a", value, base },
    { key: "b.a", value, base: "absent" },
  ],
  asserts: [{ key: "w.z", revision: 7 }],
};
const asserted = entryOf("w.z", 7, ["z"]);
const answer = (step: ResolutionStep): unknown => (step.next === "answer" ? step.outcome : step);

describe("the resolution of a commit", () => {
  it("passes on a definite yes and a definite no of the request itself", () => {
    expect(answer(new Resolution(single).onReply({ kind: "stored", revisions: [11] }))).toEqual({
      kind: "committed",
      revisions: [11],
    });
    const unacceptable = { kind: "unacceptable", cause: "too large" } as const;
    expect(answer(new Resolution(single).onReply(unacceptable))).toEqual(unacceptable);
  });

  it("repeats what was lost or not taken, waiting longer each time", () => {
    const resolution = new Resolution(single);
    expect(resolution.onReply({ kind: "lost", cause: "time-out" })).toEqual({ next: "attempt", failures: 1 });
    expect(resolution.onReply({ kind: "unreached", cause: "nobody" })).toEqual({ next: "attempt", failures: 2 });
  });

  it("refuses when a refusal names something newer and the ring shows another operation in our place", () => {
    const resolution = new Resolution(single);
    expect(resolution.onReply({ kind: "refused", revision: 12 })).toMatchObject({ next: "read", fresh: false });
    const step = resolution.onSnapshot(snapshot(entryOf("w.a", 12, ["before", "theirs"])), false);
    expect(answer(step)).toEqual({ kind: "refused", newer: "w.a" });
  });

  it("doubts a refusal that proves nothing newer, and finds that the commit landed", () => {
    const resolution = new Resolution(double);
    expect(resolution.onReply({ kind: "refused", revision: 10 })).toMatchObject({ next: "read" });
    const landed = snapshot(entryOf("w.a", 20, ["before", "ours"]), entryOf("b.a", 21, ["ours"]), asserted);
    expect(answer(resolution.onSnapshot(landed, false))).toEqual({ kind: "committed", revisions: [20, 21] });
  });

  it("repeats a refusal that names no revision before it reads", () => {
    const resolution = new Resolution(single);
    expect(resolution.onReply({ kind: "refused" })).toMatchObject({ next: "attempt" });
    expect(resolution.onReply({ kind: "refused" })).toMatchObject({ next: "attempt" });
    expect(resolution.onReply({ kind: "refused" })).toMatchObject({ next: "read" });
  });

  it("knows the revisions from any key that still has the operation last", () => {
    const resolution = new Resolution(double);
    resolution.onReply({ kind: "lost", cause: "time-out" });
    resolution.onReply({ kind: "refused", revision: 30 });
    const moved = snapshot(entryOf("w.a", 30, ["before", "ours", "theirs"]), entryOf("b.a", 21, ["ours"]), asserted);
    expect(answer(resolution.onSnapshot(moved, false))).toEqual({ kind: "committed", revisions: [20, 21] });
  });

  it("gives the least the revisions can have been when all keys were written since", () => {
    const resolution = new Resolution(single);
    resolution.onReply({ kind: "landed-earlier" });
    const moved = snapshot(entryOf("w.a", 30, ["before", "ours", "theirs"]));
    expect(answer(resolution.onSnapshot(moved, false))).toEqual({ kind: "committed", revisions: [11] });
  });

  it("takes an unchanged key for no answer: it asks for a fresh snapshot, then repeats the commit", () => {
    const resolution = new Resolution(single);
    resolution.onReply({ kind: "refused", revision: 12 });
    const unchanged = snapshot(entryOf("w.a", 10, ["before"]));
    expect(resolution.onSnapshot(unchanged, false)).toMatchObject({ next: "read", fresh: true });
    expect(resolution.onSnapshot(unchanged, true)).toMatchObject({ next: "attempt" });
  });

  it("refuses when an asserted key moved while every key of the commit stands where it stood", () => {
    const resolution = new Resolution(double);
    resolution.onReply({ kind: "lost", cause: "time-out" });
    resolution.onReply({ kind: "refused", revision: 12 });
    const broken = snapshot(entryOf("w.a", 10, ["before"]), entryOf("w.z", 12, ["z", "y"]));
    expect(answer(resolution.onSnapshot(broken, false))).toEqual({ kind: "refused", newer: "w.z" });
  });

  it("does not take absence in an old snapshot for a broken guard, in a fresh one it does", () => {
    const resolution = new Resolution(single);
    resolution.onReply({ kind: "refused", revision: 0 });
    expect(resolution.onSnapshot(snapshot(), false)).toMatchObject({ next: "read", fresh: true });
    expect(answer(resolution.onSnapshot(snapshot(), true))).toEqual({ kind: "refused", newer: "w.a" });
  });

  it("says unknown, once it was in doubt, when later operations have pushed everything out of the ring", () => {
    const ring = Array.from({ length: OPERATION_RING }, (_, index) => `later ${index}`);
    const overflown = snapshot(entryOf("w.a", 99, ring));
    const doubting = new Resolution(single);
    doubting.onReply({ kind: "lost", cause: "time-out" });
    doubting.onReply({ kind: "refused", revision: 99 });
    expect(doubting.onSnapshot(overflown, false)).toMatchObject({ next: "read", fresh: true });
    expect(answer(doubting.onSnapshot(overflown, true))).toMatchObject({ kind: "unknown" });
    const certain = new Resolution(single);
    certain.onReply({ kind: "refused", revision: 99 });
    certain.onSnapshot(overflown, false);
    expect(answer(certain.onSnapshot(overflown, true))).toEqual({ kind: "refused", newer: "w.a" });
  });

  it("can't tell whether an entry that vanishes by itself was ours", () => {
    const fading: Commit = {
      operationId: "ours",
      puts: [{ key: "q.a", value, base: "absent", ttlMs: 1000 }],
      asserts: [{ key: "w.z", revision: 7 }],
    };
    const resolution = new Resolution(fading);
    resolution.onReply({ kind: "lost", cause: "time-out" });
    resolution.onReply({ kind: "refused", revision: 9 });
    expect(answer(resolution.onSnapshot(snapshot(entryOf("w.z", 9, ["z", "y"])), true))).toMatchObject({
      kind: "unknown",
    });
  });

  it("says at the deadline what is certain: nothing was taken, it landed, or nobody knows", () => {
    const untaken = new Resolution(single);
    untaken.onReply({ kind: "unreached", cause: "nobody" });
    expect(untaken.onDeadline()).toEqual({ kind: "unreached", cause: "nobody" });
    const landed = new Resolution(single);
    landed.onReply({ kind: "landed-earlier" });
    landed.onReadFailed("no answer");
    expect(landed.onDeadline()).toEqual({ kind: "committed", revisions: [11] });
    const lost = new Resolution(single);
    lost.onReply({ kind: "lost", cause: "time-out" });
    lost.onReply({ kind: "unreached", cause: "nobody" });
    expect(lost.onDeadline()).toEqual({ kind: "unknown", cause: "nobody" });
    const refused = new Resolution(single);
    refused.onReply({ kind: "refused", revision: 12 });
    expect(refused.onReadFailed("no answer")).toMatchObject({ next: "read", fresh: true });
    expect(refused.onDeadline()).toMatchObject({ kind: "unknown" });
  });

  it("asks for every key of the commit, once", () => {
    expect(new Resolution(double).keys()).toEqual(["w.a", "b.a", "w.z"]);
  });
});
