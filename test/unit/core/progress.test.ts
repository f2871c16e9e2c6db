/**
 * Goal: checkpoints and completion as contract 1.8 has them, with every case of a result id that is already recorded.
 * Method: one running workload and its successors.
 */
import { describe, expect, it } from "vitest";
import { sha256Hex } from "../../../src/base/hash.ts";
import type { Json } from "../../../src/base/json.ts";
import { decideCheckpoint, decideComplete } from "../../../src/core/workload/progress.ts";
import { decideRecover } from "../../../src/core/workload/recovery.ts";
import type { WorkloadRecord } from "../../../src/core/workload/record.ts";
import {
  accepted,
  admitted,
  answerOf,
  cancel,
  changeOf,
  checkpointed,
  claimed,
  complete,
  fail,
  fenceOf,
  recordIn,
  refusalOf,
  refusedWith,
  rules,
  running,
  T0,
} from "./fixtures.ts";

const checkpoint = (
  record: WorkloadRecord,
  now: number,
  state: Json = { page: 1 },
  changes: Partial<typeof rules> = {},
) => decideCheckpoint(record, { fence: fenceOf(record), state }, { now, rules: { ...rules, ...changes } });

describe("a checkpoint", () => {
  it("is numbered and hashed, and the first one after RUNNING is an event", () => {
    const record = running();
    const decision = checkpoint(record, T0 + 3);
    const next = accepted(decision);
    expect(answerOf(decision)).toEqual({
      checkpointId: `checkpoint_${record.workloadId}_1`,
      workloadId: record.workloadId,
      attemptId: `attempt_${record.workloadId}_1`,
      sequence: 1,
      state: { json: '{"page":1}' },
      stateHash: sha256Hex('{"page":1}'),
      createdAt: T0 + 3,
      producedBy: "w1",
    });
    expect(next.checkpoints).toEqual([answerOf(decision)]);
    expect(next.attempts[0]?.status).toBe("CHECKPOINTED");
    expect(next.history.at(-1)).toMatchObject({ from: "RUNNING", to: "CHECKPOINTED", actor: "w1", at: T0 + 3 });
  });

  it("is no event when another came before it in the attempt", () => {
    const first = checkpointed(running(), T0 + 1);
    const second = accepted(checkpoint(first, T0 + 2));
    expect(second.history).toEqual(first.history);
    expect(second.checkpoints.map(({ sequence }) => sequence)).toEqual([1, 2]);
    expect(second.updatedAt).toBe(T0 + 2);
  });

  it("goes on counting in the next attempt, and is an event again", () => {
    const first = checkpointed(running(), T0 + 1);
    const again = claimed(accepted(fail(first, fenceOf(first), { now: T0 + 2 })), T0 + 2000, { start: true });
    const next = accepted(checkpoint(again, T0 + 2001));
    expect(next.checkpoints[1]).toMatchObject({ sequence: 2, attemptId: `attempt_${next.workloadId}_2` });
    expect(next.history.at(-1)?.to).toBe("CHECKPOINTED");
  });

  it("is refused with a secret before the fence, and by the fence before the state", () => {
    const record = claimed(admitted(), T0);
    const bent = { ...fenceOf(record), workerId: "w9" };
    const withSecret = decideCheckpoint(record, { fence: bent, state: { token: 1 } }, { now: T0, rules });
    expect(refusedWith(withSecret)).toBe("WORKLOAD_SECRET_REJECTED");
    expect(refusalOf(withSecret).details).toEqual({ path: "state.token" });
    expect(refusedWith(decideCheckpoint(record, { fence: bent, state: 1 }, { now: T0, rules }))).toBe(
      "WORKLOAD_STALE_FENCE",
    );
    expect(refusedWith(checkpoint(record, T0))).toBe("WORKLOAD_TRANSITION_DENIED");
    expect(refusedWith(checkpoint(accepted(cancel(running(), T0 + 1)), T0 + 2))).toBe("WORKLOAD_TRANSITION_DENIED");
  });

  it("is kept beside the record when it is large, or when the others have used the room", () => {
    const record = running();
    const large = changeOf(checkpoint(record, T0, "x".repeat(5000)));
    expect(large.record.checkpoints[0]?.state).toEqual({ slot: "checkpoint_1", bytes: 5002 });
    expect(large.payloads).toHaveLength(1);
    const room = { inlineCheckpointBytesMax: 30 };
    const first = accepted(checkpoint(record, T0, "éééééééééé", room));
    expect(first.checkpoints[0]?.state).toEqual({ json: '"éééééééééé"' });
    const second = changeOf(checkpoint(first, T0, "123456789", room));
    expect(second.record.checkpoints[1]?.state).toEqual({ slot: "checkpoint_2", bytes: 11 });
  });

  it("is refused when a worker could not be handed all of them in one message", () => {
    const bounds = { contextBytesMax: 40 };
    const record = accepted(checkpoint(running(), T0, "a".repeat(10), bounds));
    const inputBytes = "json" in record.input ? record.input.json.length : 0;
    expect(refusalOf(checkpoint(record, T0, "é".repeat(20), bounds))).toMatchObject({
      code: "WORKLOAD_TOO_LARGE",
      details: { path: "state", bytes: inputBytes + 12 + 42, bytesMax: 40 },
    });
  });

  it("is refused beyond the most a workload may have, and the workload can still end", () => {
    const record = accepted(checkpoint(running(), T0, 1, { checkpointsMax: 1 }));
    expect(refusedWith(checkpoint(record, T0, 2, { checkpointsMax: 1 }))).toBe("WORKLOAD_TOO_LARGE");
    expect(accepted(complete(record, fenceOf(record), { now: T0 + 1 })).state).toBe("SUCCEEDED");
  });

  it("is refused when it is too large", () => {
    expect(refusedWith(checkpoint(running(), T0, "x".repeat(100), { payloadBytesMax: 50 }))).toBe("WORKLOAD_TOO_LARGE");
  });
});

describe("a completion", () => {
  const record = running();
  const fence = fenceOf(record);

  it("stores the result, ends the attempt and drops the claim", () => {
    const decision = complete(record, fence, { now: T0 + 7, resultId: "r1" });
    const next = accepted(decision);
    const outputHash = sha256Hex('"done"');
    expect(answerOf(decision)).toEqual({
      resultId: "r1",
      workloadId: record.workloadId,
      attemptId: `attempt_${record.workloadId}_1`,
      status: "succeeded",
      output: { json: '"done"' },
      outputHash,
      artifacts: ["a.pdf"],
      provenance: { claimId: fence.claimId, fencingToken: 1 },
      producedBy: "w1",
      createdAt: T0 + 7,
      schemaVersion: "1",
    });
    expect(next.result).toEqual(answerOf(decision));
    expect(next.currentClaim).toBeUndefined();
    expect(next.attempts).toEqual([
      { ...record.attempts[0], status: "SUCCEEDED", endedAt: T0 + 7, resultHash: outputHash },
    ]);
    expect(next.history.at(-1)).toMatchObject({ from: "RUNNING", to: "SUCCEEDED", actor: "w1", at: T0 + 7 });
    expect(changeOf(decision).reservedResultId).toBe("r1");
  });

  it("needs no reservation for the id that the authority gives, named or not", () => {
    const own = `result_attempt_${record.workloadId}_1`;
    for (const resultId of [undefined, own]) {
      const change = changeOf(
        complete(record, fence, { now: T0 + 7, ...(resultId === undefined ? {} : { resultId }) }),
      );
      expect(change.record.result?.resultId).toBe(own);
      expect(change).not.toHaveProperty("reservedResultId");
    }
  });

  it("is allowed from RUNNING and CHECKPOINTED alone", () => {
    const point = checkpointed(record, T0 + 1);
    expect(accepted(complete(point, fence, { now: T0 + 2 })).state).toBe("SUCCEEDED");
    const held = claimed(admitted(), T0);
    expect(refusedWith(complete(held, fenceOf(held), { now: T0 }))).toBe("WORKLOAD_TRANSITION_DENIED");
    const requested = accepted(cancel(record, T0 + 1));
    expect(refusedWith(complete(requested, fence, { now: T0 + 2 }))).toBe("WORKLOAD_TRANSITION_DENIED");
  });

  it("is refused to a stale fence, without a claim, and after the lease", () => {
    expect(refusedWith(complete(record, { ...fence, fencingToken: 2 }, { now: T0 }))).toBe("WORKLOAD_STALE_FENCE");
    expect(refusedWith(complete(record, fence, { now: T0 + 10_000 }))).toBe("WORKLOAD_LEASE_EXPIRED");
    expect(refusedWith(complete(recordIn.DEAD_LETTER(), fence, { now: T0 + 5 }))).toBe("WORKLOAD_CLAIM_INVALID");
  });

  it("is refused with a secret in the output, before the result id is looked at", () => {
    const decision = decideComplete(
      record,
      { fence, resultId: "taken", output: [{ Api_Key: 1 }], artifacts: [], schemaVersion: "1" },
      { now: T0, rules, reservedFor: "workload_other" },
    );
    expect(refusedWith(decision)).toBe("WORKLOAD_SECRET_REJECTED");
    expect(refusalOf(decision).details).toEqual({ path: "output[0].Api_Key" });
  });

  it("keeps a large output beside the record and refuses one beyond the limit", () => {
    const change = changeOf(complete(record, fence, { now: T0, output: "x".repeat(5000) }));
    expect(change.record.result?.output).toEqual({ slot: `output_attempt_${record.workloadId}_1`, bytes: 5002 });
    expect(refusedWith(complete(record, fence, { now: T0, output: "x".repeat(4 * 1024 * 1024) }))).toBe(
      "WORKLOAD_TOO_LARGE",
    );
  });
});

describe("a result id that is already recorded", () => {
  const record = running();
  const fence = fenceOf(record);
  const done = accepted(complete(record, fence, { now: T0 + 7, resultId: "r1" }));
  const own = { reservedFor: record.workloadId };

  it("for this workload, by the same claim with an equal output, answers the recorded result again", () => {
    const again = complete(done, fence, { now: T0 + 99_000, resultId: "r1", ...own });
    expect(again).toEqual({ ok: true, answer: done.result });
  });

  it("replays a completion that named no id as well", () => {
    const plain = accepted(complete(record, fence, { now: T0 + 7 }));
    expect(complete(plain, fence, { now: T0 + 8 })).toEqual({ ok: true, answer: plain.result });
    expect(refusedWith(complete(plain, fence, { now: T0 + 8, output: "other" }))).toBe("WORKLOAD_RESULT_CONFLICT");
  });

  it("compares outputs by value, not by the order of members", () => {
    const output = (value: Json, on: WorkloadRecord) =>
      decideComplete(
        on,
        { fence, resultId: "r1", output: value, artifacts: [], schemaVersion: "1" },
        { now: T0 + 8, rules, reservedFor: undefined },
      );
    const first = accepted(output({ a: 1, b: [2] }, record));
    expect(answerOf(output({ b: [2], a: 1 }, first))).toEqual(first.result);
    expect(refusedWith(output({ a: 1, b: [3] }, first))).toBe("WORKLOAD_RESULT_CONFLICT");
  });

  it("conflicts with another output, worker, claim or token", () => {
    expect(refusedWith(complete(done, fence, { now: T0 + 8, resultId: "r1", output: "other", ...own }))).toBe(
      "WORKLOAD_RESULT_CONFLICT",
    );
    for (const bent of [{ workerId: "w9" }, { claimId: "other" }, { fencingToken: 2 }])
      expect(refusedWith(complete(done, { ...fence, ...bent }, { now: T0 + 8, resultId: "r1", ...own }))).toBe(
        "WORKLOAD_RESULT_CONFLICT",
      );
  });

  it("for another workload is a duplicate, before the fence is looked at", () => {
    const decision = complete(
      record,
      { ...fence, fencingToken: 9 },
      { now: T0, resultId: "r9", reservedFor: "workload_other" },
    );
    expect(refusedWith(decision)).toBe("WORKLOAD_RESULT_DUPLICATE");
    expect(refusalOf(decision).details).toEqual({ resultId: "r9" });
  });

  it("is not given to an id in the form of another workload's own: that one is a duplicate", () => {
    const other = `result_attempt_workload_${"0".repeat(24)}_1`;
    expect(refusedWith(complete(record, fence, { now: T0, resultId: other }))).toBe("WORKLOAD_RESULT_DUPLICATE");
  });

  it("conflicts when an earlier holder names the default id of the attempt that succeeded", () => {
    const lost = accepted(decideRecover(record, { now: T0 + 10_000 }));
    const second = claimed(lost, T0 + 10_001, { workerId: "w2", start: true });
    const finished = accepted(complete(second, fenceOf(second), { now: T0 + 10_002 }));
    const late = complete(finished, fence, { now: T0 + 10_003, resultId: `result_attempt_${record.workloadId}_2` });
    expect(refusedWith(late)).toBe("WORKLOAD_RESULT_CONFLICT");
    expect(refusedWith(complete(finished, fence, { now: T0 + 10_003 }))).toBe("WORKLOAD_CLAIM_INVALID");
  });

  it("meets the fence when the finished workload gets another id", () => {
    expect(refusedWith(complete(done, fence, { now: T0 + 8, resultId: "r2" }))).toBe("WORKLOAD_CLAIM_INVALID");
  });
});
