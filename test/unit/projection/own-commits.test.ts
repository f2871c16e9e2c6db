/**
 * Goal: the view takes a node's own commit from the log as the record that was sent, and never takes another writer's for it.
 * Method: commits of two writers over the simulated store, one of them announced to the view.
 */
import { describe, expect, it } from "vitest";
import { systemTimers } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import type { WorkloadRecord } from "../../../src/core/workload/record.ts";
import { workloadKey } from "../../../src/store/keys.ts";
import { Projection } from "../../../src/store/projection/projection.ts";
import { SimulatedLog } from "../../../src/store/simulated/simulated-log.ts";
import { encodeWorkload } from "../../../src/wire/codec.ts";
import { admitted, T0 } from "../core/fixtures.ts";

interface Stage {
  readonly projection: Projection;
  readonly record: WorkloadRecord;
  readonly key: string;
  readonly commit: (operationId: string, record: WorkloadRecord) => Promise<WorkloadRecord | undefined>;
}

/** One view, and a way to commit a new workload that waits until the view has seen it. */
function stage(): Stage {
  const now = (): number => T0;
  const store = new SimulatedLog({ clock: { now }, shards: 1 }).client();
  const hooks = { onReady: () => undefined, onLater: () => undefined };
  const projection = new Projection({ store, log: silentLog, now, timers: systemTimers, ...hooks });
  projection.start();
  const record = admitted();
  const key = workloadKey(record, record.workloadId);
  return {
    projection,
    record,
    key,
    commit: async (operationId, sent) => {
      const [shard] = store.shards;
      const outcome = await shard?.commit({
        operationId,
        puts: [{ key, value: encodeWorkload(sent), base: "absent" }],
      });
      expect(outcome?.kind).toBe("committed");
      const revision = outcome?.kind === "committed" ? (outcome.revisions[0] ?? 0) : 0;
      expect(await projection.waitFor(0, revision, 5000)).toBe(true);
      return projection.index.get(sent.workloadId)?.record;
    },
  };
}

describe("a view that was told of a commit", () => {
  it("takes it from the log as the record that was sent, with the log's revision and ring", async () => {
    const { projection, record, key, commit } = stage();
    projection.expect(key, { operationId: ":1:own0", record, node: "here", action: "admit" });
    expect(await commit(":1:own0", record)).toBe(record);
    expect(projection.index.get(record.workloadId)).toMatchObject({
      revision: 1,
      operations: [":1:own0"],
      node: "here",
      action: "admit",
      writable: true,
    });
    await projection.stop();
  });

  it("takes another writer's commit of the same key as it stands in the log", async () => {
    const { projection, record, key, commit } = stage();
    projection.expect(key, { operationId: ":1:own0", record, node: "here", action: "admit" });
    const other = { ...record, trigger: "another writer" };
    const seen = await commit(":1:other0", other);
    expect(seen).toEqual(other);
    expect(projection.index.get(record.workloadId)?.operations).toEqual([":1:other0"]);
    await projection.stop();
  });

  it("decodes what it no longer expects", async () => {
    const { projection, record, key, commit } = stage();
    projection.expect(key, { operationId: ":1:own0", record, node: "here", action: "admit" });
    projection.forget(key, ":1:else0");
    projection.forget(key, ":1:own0");
    const seen = await commit(":1:own0", record);
    expect(seen).toEqual(record);
    expect(seen).not.toBe(record);
    await projection.stop();
  });
});
