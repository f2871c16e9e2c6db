/**
 * Goal: a worker's life as contract 2.2 has it: every command in every lifecycle, in the order of its checks.
 * Method: a worker is brought into each lifecycle by commands; then each command is put to it.
 */
import { describe, expect, it } from "vitest";
import { decideWorkerHeartbeat } from "../../../src/core/worker/heartbeat.ts";
import { mayMove, workerMoves } from "../../../src/core/worker/lifecycle.ts";
import { decideOffline, silentAt } from "../../../src/core/worker/liveness.ts";
import { decideDrain, decideRecoverWorker, decideRemove } from "../../../src/core/worker/operate-worker.ts";
import { workerLifecycles, type WorkerLifecycle } from "../../../src/core/worker/record.ts";
import { shownLifecycle, type WorkerSeen } from "../../../src/core/worker/slots.ts";
import { renderWorker } from "../../../src/core/worker/worker-view.ts";
import { T0 } from "../core/fixtures.ts";
import {
  accepted,
  answerOf,
  heartbeatOf,
  ready,
  refusalOf,
  refusedWith,
  register,
  registered,
  withClaims,
} from "./fixtures.ts";

/** A worker of concurrency 2 that is shown in each lifecycle. */
const seenIn: Readonly<Record<WorkerLifecycle, () => WorkerSeen>> = {
  REGISTERED: () => withClaims(registered()),
  READY: () => withClaims(ready(), "a"),
  BUSY: () => withClaims(ready(), "a", "b"),
  DRAINING: () => withClaims(accepted(decideDrain(withClaims(ready()), {})), "a"),
  OFFLINE: () => withClaims(accepted(decideOffline(withClaims(ready()), T0 + 99_000))),
  RECOVERING: () => withClaims(accepted(decideRecoverWorker(seenIn.OFFLINE(), {}))),
};

const heartbeat = (seen: WorkerSeen, changes: Parameters<typeof heartbeatOf>[1] = {}, now: number = T0 + 500) =>
  decideWorkerHeartbeat(seen, heartbeatOf(seen.record, changes), now);

const shownAfter = (seen: WorkerSeen, decision: { readonly record?: WorkerSeen["record"] }): WorkerLifecycle =>
  shownLifecycle({ ...seen, record: decision.record ?? seen.record });

describe("every command in every lifecycle", () => {
  const table: Readonly<Record<WorkerLifecycle, readonly [heartbeat: string, drain: string, recover: string]>> = {
    REGISTERED: ["READY", "WORKER_TRANSITION_DENIED", "WORKER_TRANSITION_DENIED"],
    READY: ["READY", "DRAINING", "WORKER_TRANSITION_DENIED"],
    BUSY: ["BUSY", "DRAINING", "WORKER_TRANSITION_DENIED"],
    DRAINING: ["DRAINING", "DRAINING", "WORKER_TRANSITION_DENIED"],
    OFFLINE: ["WORKER_RECOVERY_REQUIRED", "WORKER_TRANSITION_DENIED", "RECOVERING"],
    RECOVERING: ["READY", "WORKER_TRANSITION_DENIED", "RECOVERING"],
  };
  for (const lifecycle of workerLifecycles)
    it(`answers as the table has it in ${lifecycle}`, () => {
      const seen = seenIn[lifecycle]();
      expect(shownLifecycle(seen)).toBe(lifecycle);
      const outcomes = [heartbeat(seen), decideDrain(seen, {}), decideRecoverWorker(seen, {})].map((decision) =>
        decision.ok ? shownAfter(seen, decision) : refusedWith(decision),
      );
      expect(outcomes).toEqual(table[lifecycle]);
      const silent = decideOffline(seen, silentAt(seen.record));
      expect(shownAfter(seen, silent)).toBe("OFFLINE");
    });

  it("moves a worker only where the table of contract 2.2 lets it go", () => {
    const allowed = workerLifecycles.map((from) => [from, workerLifecycles.filter((to) => mayMove(from, to)).sort()]);
    expect(allowed).toEqual([
      ["REGISTERED", ["READY"]],
      ["READY", ["BUSY", "DRAINING", "OFFLINE"]],
      ["BUSY", ["DRAINING", "OFFLINE", "READY"]],
      ["DRAINING", ["OFFLINE"]],
      ["OFFLINE", ["RECOVERING"]],
      ["RECOVERING", ["OFFLINE", "READY"]],
    ]);
    expect(Object.keys(workerMoves)).toEqual(workerLifecycles);
  });

  it("says in a denial where the worker is", () => {
    expect(refusalOf(decideDrain(seenIn.OFFLINE(), {}))).toMatchObject({
      code: "WORKER_TRANSITION_DENIED",
      details: { lifecycle: "OFFLINE" },
    });
    expect(refusalOf(decideRecoverWorker(seenIn.BUSY(), {})).details).toEqual({ lifecycle: "BUSY" });
  });
});

describe("a heartbeat", () => {
  it("makes a registered worker READY with the health that it reports", () => {
    const record = registered();
    const next = accepted(heartbeat(withClaims(record), { health: "DEGRADED" }, T0 + 7));
    expect(next).toEqual({ ...record, lifecycle: "READY", health: "DEGRADED", lastSeen: T0 + 7 });
  });

  it("answers the worker with what its slots tell, and what it should stop or look for", () => {
    const seen = withClaims(ready(), "a", "b");
    const answer = answerOf(heartbeat(seen, { active: 9, runningClaims: ["b", "x", "x", "y"] }));
    expect(answer).toMatchObject({
      worker: { lifecycle: "BUSY", capacity: { concurrency: 2, active: 2 }, claims: ["a", "b"] },
      stopClaims: ["x", "y"],
      missingClaims: ["a"],
    });
    expect(answerOf(heartbeat(seen, { runningClaims: ["b", "a"] }))).toMatchObject({
      stopClaims: [],
      missingClaims: [],
    });
  });

  it("counts claims of an earlier incarnation as no longer the worker's own, while they still take room", () => {
    const record = ready();
    const next = accepted(register(record, { incarnation: "boot_2" }));
    const seen = { record: next, slots: withClaims(record, "a", "b").slots };
    expect(answerOf(heartbeat(seen, { runningClaims: ["a"] }))).toMatchObject({
      worker: { lifecycle: "BUSY" },
      stopClaims: ["a"],
      missingClaims: [],
    });
  });

  it("makes a drained worker OFFLINE, which keeps the health it reports", () => {
    const draining = withClaims(seenIn.DRAINING().record);
    expect(shownLifecycle(draining)).toBe("OFFLINE");
    const next = accepted(heartbeat(draining, { health: "DEGRADED" }));
    expect([next.lifecycle, next.health]).toEqual(["OFFLINE", "DEGRADED"]);
    expect(refusedWith(heartbeat(withClaims(next)))).toBe("WORKER_RECOVERY_REQUIRED");
  });

  it("commits nothing when it tells nothing new", () => {
    const seen = withClaims(ready());
    expect(heartbeat(seen, {}, T0 + 1).record).toBeUndefined();
    expect(heartbeat(seen, {}, T0 - 50).record).toBeUndefined();
    expect(heartbeat(seen, { health: "UNHEALTHY" }, T0 - 50).record).toMatchObject({ lastSeen: T0 + 1 });
  });

  it("is refused in the order of the contract: incarnation, identity, clock, OFFLINE", () => {
    const { record, slots } = seenIn.OFFLINE();
    const seen = { record: accepted(register(record, { version: "2" })), slots };
    const wrong = { incarnation: "boot_0", version: "9", timestamp: 0 };
    expect(refusedWith(heartbeat(seen, wrong))).toBe("WORKER_SUPERSEDED");
    expect(refusedWith(heartbeat(seen, { ...wrong, incarnation: "boot_1" }))).toBe("WORKER_HEARTBEAT_REJECTED");
    expect(refusedWith(heartbeat(seen, { timestamp: 0 }))).toBe("WORKER_CLOCK_INVALID");
    expect(refusedWith(heartbeat(seen))).toBe("WORKER_RECOVERY_REQUIRED");
  });

  it("names every difference from what is registered", () => {
    const seen = withClaims(ready());
    for (const [changes, fields] of [
      [{ workerId: "worker_x" }, ["workerId"]],
      [{ version: "2", capabilityVersion: 3 }, ["version", "capabilityVersion"]],
    ] as const)
      expect(refusalOf(heartbeat(seen, changes))).toMatchObject({
        code: "WORKER_HEARTBEAT_REJECTED",
        details: { fields },
      });
  });

  it("tolerates a clock that is five seconds behind, and no more", () => {
    const seen = withClaims(ready());
    const { lastSeen } = seen.record;
    expect(heartbeat(seen, { timestamp: lastSeen - 5000 }).ok).toBe(true);
    expect(refusalOf(heartbeat(seen, { timestamp: lastSeen - 5001 }))).toMatchObject({
      code: "WORKER_CLOCK_INVALID",
      details: { lastSeen, timestamp: lastSeen - 5001 },
    });
    expect(heartbeat(seen, { timestamp: lastSeen + 9e9 }).ok).toBe(true);
  });

  it("that names no incarnation is not asked for one", () => {
    expect(heartbeat(withClaims(ready()), { incarnation: undefined }).ok).toBe(true);
  });
});

describe("draining", () => {
  it("is shown OFFLINE when the last claim has ended", () => {
    const record = accepted(decideDrain(withClaims(ready(), "a"), {}));
    expect(shownLifecycle(withClaims(record, "a"))).toBe("DRAINING");
    expect(renderWorker(withClaims(record)).lifecycle).toBe("OFFLINE");
  });

  it("changes nothing when it is asked for again", () => {
    const record = accepted(decideDrain(withClaims(ready(), "a"), {}));
    expect(decideDrain(withClaims(record, "a"), {})).toEqual({ ok: true, answer: record });
    expect(decideDrain(withClaims(record), {})).toEqual({ ok: true, answer: record });
  });

  it("ends by recovery once it is over, as an OFFLINE worker's silence does", () => {
    const drained = withClaims(accepted(decideDrain(withClaims(ready()), {})));
    const recovering = accepted(decideRecoverWorker(drained, {}));
    expect(recovering.lifecycle).toBe("RECOVERING");
    expect(decideRecoverWorker(withClaims(recovering), {})).toEqual({ ok: true, answer: recovering });
  });
});

describe("removing", () => {
  it("is done at once to a worker that gets no claims and has none", () => {
    for (const lifecycle of ["REGISTERED", "OFFLINE", "RECOVERING"] as const)
      expect(decideRemove(seenIn[lifecycle](), {})).toEqual({ ok: true, answer: true });
    const drained = withClaims(accepted(decideDrain(withClaims(ready()), {})));
    expect(decideRemove(drained, {})).toEqual({ ok: true, answer: true });
  });

  it("closes a READY worker first, so that no claim can be on its way when it goes", () => {
    const record = ready();
    const closed = decideRemove(withClaims(record), {});
    expect(closed).toEqual({ ok: true, answer: false, record: { ...record, lifecycle: "DRAINING" } });
    expect(decideRemove(withClaims(accepted(closed)), {})).toEqual({ ok: true, answer: true });
  });

  it("is refused while there are claims", () => {
    for (const lifecycle of ["BUSY", "DRAINING"] as const)
      expect(refusedWith(decideRemove(seenIn[lifecycle](), {}))).toBe("WORKER_BUSY");
    expect(refusalOf(decideRemove(withClaims(ready(), undefined, "a"), {})).details).toEqual({ active: 1 });
  });
});

describe("a call of a superseded process", () => {
  it("is refused before anything else", () => {
    const seen = withClaims(accepted(register(ready(), { incarnation: "boot_2" })), "a");
    for (const decide of [decideDrain, decideRecoverWorker, decideRemove]) {
      expect(refusedWith(decide(seen, { incarnation: "boot_1" }))).toBe("WORKER_SUPERSEDED");
      expect(refusedWith(decide(seen, { incarnation: "never heard of" }))).toBe("WORKER_SUPERSEDED");
      expect(refusedWith(decide(seen, { incarnation: "boot_2" }))).not.toBe("WORKER_SUPERSEDED");
    }
  });
});

describe("the pass over workers", () => {
  it("gives a worker up at its time-out and not before, and leaves all else as it is", () => {
    const record = ready({ heartbeatTimeoutMs: 700 });
    const seen = withClaims(record, "a");
    expect(decideOffline(seen, T0 + 700)).toEqual({ ok: true, answer: false });
    expect(decideOffline(seen, T0 + 701)).toEqual({
      ok: true,
      answer: true,
      record: { ...record, lifecycle: "OFFLINE", health: "UNHEALTHY" },
    });
  });

  it("finds nothing to do on an OFFLINE worker, or on one that was heard meanwhile", () => {
    expect(decideOffline(seenIn.OFFLINE(), T0 + 9e9)).toEqual({ ok: true, answer: false });
    const heard = accepted(heartbeat(withClaims(ready()), {}, T0 + 30_001));
    expect(decideOffline(withClaims(heard), T0 + 30_001)).toEqual({ ok: true, answer: false });
  });

  it("commits that a drained worker is OFFLINE", () => {
    const record = accepted(decideDrain(withClaims(ready()), {}));
    expect(decideOffline(withClaims(record, "a"), T0 + 2)).toEqual({ ok: true, answer: false });
    expect(decideOffline(withClaims(record), T0 + 2)).toEqual({
      ok: true,
      answer: true,
      record: { ...record, lifecycle: "OFFLINE" },
    });
  });

  it("never overflows", () => {
    expect(silentAt(ready({ heartbeatTimeoutMs: Number.MAX_SAFE_INTEGER }))).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe("a heartbeat of a worker of the largest concurrency", () => {
  it("is decided in far less than a second, though claims stand on both sides in thousands", () => {
    const claims = Array.from({ length: 10_000 }, (_, index) => `claim_${String(index).padStart(24, "0")}`);
    const seen = withClaims(ready({ concurrency: 10_000 }), ...claims);
    const from = performance.now();
    const answer = answerOf(heartbeat(seen, { runningClaims: [...claims.slice(1).reverse(), "claim_gone"] }));
    expect(performance.now() - from, "ms").toBeLessThan(500);
    expect(answer).toMatchObject({ stopClaims: ["claim_gone"], missingClaims: [claims[0]] });
  });
});
