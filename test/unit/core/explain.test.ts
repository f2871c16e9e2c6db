/**
 * Goal: an explanation lists everything that keeps a workload from being claimed (contract 1.13), and nothing else.
 * Method: records with several obstacles at once; where none is listed, a claim must succeed.
 */
import { describe, expect, it } from "vitest";
import { explainWorkload } from "../../../src/core/workload/explain.ts";
import type { WorkloadRecord } from "../../../src/core/workload/record.ts";
import { workloadStates, type WorkloadState } from "../../../src/core/workload/states.ts";
import {
  accepted,
  admitted,
  approve,
  claimed,
  fail,
  fenceOf,
  frozen,
  noDependencies,
  recordIn,
  running,
  T0,
} from "./fixtures.ts";

const reasonsOf = (
  record: WorkloadRecord,
  now: number,
  dependencies: ReadonlyMap<string, WorkloadState> = noDependencies,
) => explainWorkload(record, { now, dependencies }).map(({ reason }) => reason);

describe("an explanation", () => {
  it("is empty when a worker could claim the workload", () => {
    expect(reasonsOf(admitted(), T0)).toEqual([]);
    expect(claimed(admitted(), T0).state).toBe("CLAIMED");
  });

  it("lists approval, time and dependencies together", () => {
    const record = admitted({
      approval: {},
      notBefore: T0 + 100,
      dependencies: [{ workloadId: "a" }, { workloadId: "b" }],
    });
    expect(reasonsOf(record, T0)).toEqual(["approval", "time", "dependency", "dependency"]);
    const met = new Map<string, WorkloadState>([["a", "SUCCEEDED"]]);
    expect(reasonsOf(accepted(approve(record, T0 + 1)), T0 + 99, met)).toEqual(["time", "dependency"]);
    expect(explainWorkload(record, { now: T0, dependencies: met })[1]).toMatchObject({ nextAttemptAt: T0 + 100 });
    expect(explainWorkload(record, { now: T0, dependencies: met })[2]).toMatchObject({
      dependency: { workloadId: "b", requiredState: "SUCCEEDED" },
    });
  });

  it("is eligible at exactly the instant", () => {
    expect(reasonsOf(admitted({ notBefore: T0 + 5 }), T0 + 4)).toEqual(["time"]);
    expect(reasonsOf(admitted({ notBefore: T0 + 5 }), T0 + 5)).toEqual([]);
  });

  it("names a used-up budget", () => {
    const record = running();
    const ready = accepted(fail(record, fenceOf(record), { now: T0 + 1 }));
    const spent = frozen({ ...ready, retryPolicy: { ...ready.retryPolicy, maxAttempts: 1 } });
    expect(explainWorkload(spent, { now: T0 + 5000, dependencies: noDependencies })).toMatchObject([
      { reason: "budget", attemptsUsed: 1, attemptBudget: 1 },
    ]);
  });

  it("names every state in which nobody can claim", () => {
    for (const state of workloadStates) {
      if (state === "READY" || state === "AWAITING_APPROVAL") continue;
      expect(explainWorkload(recordIn[state](), { now: T0, dependencies: noDependencies })).toMatchObject([
        { reason: "state", state },
      ]);
    }
  });
});
