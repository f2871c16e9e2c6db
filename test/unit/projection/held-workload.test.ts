/**
 * Goal: a workload that gave its decoded record up answers exactly as before, and nothing is given up that can't be had again.
 * Method: records in several states, with odd texts in them, cooled and asked; identity of the record tells whether it was kept.
 */
import { describe, expect, it } from "vitest";
import { HeldWorkload, WarmRecords } from "../../../src/store/projection/held-workload.ts";
import { outlineOf } from "../../../src/store/projection/outline.ts";
import type { Projected } from "../../../src/store/projection/projected.ts";
import type { WorkloadRecord } from "../../../src/core/workload/record.ts";
import { decodeWorkload, encodeWorkload } from "../../../src/wire/codec.ts";
import { admitted, recordIn } from "../core/fixtures.ts";

const ring = [":1:a0", "mark_0123456789:3:b1", ":4:c2"];

const projected = (record: WorkloadRecord, operations: readonly string[] = ring): Projected => ({
  record,
  writable: true,
  key: `w.t.a.${record.workloadId}`,
  shard: 0,
  revision: 7,
  operations,
  node: "node-1",
  action: "claim",
});

const asStored = (record: WorkloadRecord): WorkloadRecord => {
  const stored = decodeWorkload(encodeWorkload(record));
  if (stored === undefined) throw new TypeError("no record");
  return stored.record;
};

const records: readonly (readonly [string, WorkloadRecord])[] = [
  ["fresh", admitted()],
  ["running", recordIn.RUNNING()],
  ["done", recordIn.SUCCEEDED()],
  ["dead", recordIn.DEAD_LETTER()],
  ["odd", { ...admitted(), trigger: "käfer 🐞 \u0000", definitionId: "ünï 🐞", tenantId: "日本" }],
];

describe("a held workload", () => {
  it.each(records)("answers the same record and ring after it has cooled: %s", (_, record) => {
    const workload = new HeldWorkload(projected(record), new WarmRecords(), encodeWorkload(record));
    expect(workload.record).toBe(record);
    workload.cool();
    expect(workload.operations).toEqual(ring);
    expect(workload.record).toEqual(asStored(record));
    expect(workload.outline).toEqual(outlineOf(record));
    expect(workload.record).toBe(workload.record);
  });

  it("answers an empty ring, and the longest one", () => {
    for (const operations of [[], Array.from({ length: 32 }, (_, index) => `mark_0123456789:${index}:nonce${index}`)]) {
      const record = admitted();
      const workload = new HeldWorkload(projected(record, operations), new WarmRecords(), encodeWorkload(record));
      workload.cool();
      expect(workload.operations).toEqual(operations);
    }
  });

  it("keeps its record until its bytes are here, and then gives it up if it was told to", () => {
    const record = recordIn.RUNNING();
    const workload = new HeldWorkload(projected(record), new WarmRecords());
    workload.cool();
    expect(workload.record).toBe(record);
    workload.keep(encodeWorkload(record));
    expect(workload.record).not.toBe(record);
    expect(workload.record).toEqual(asStored(record));
  });

  it("does not depend on the memory that its bytes were handed over in", () => {
    const record = recordIn.RUNNING();
    const value = encodeWorkload(record);
    const shared = new Uint8Array(value.length + 20).fill(1);
    shared.set(value, 10);
    const workload = new HeldWorkload(projected(record), new WarmRecords(), shared.subarray(10, 10 + value.length));
    shared.fill(0);
    workload.cool();
    expect(workload.record).toEqual(asStored(record));
  });

  it("gives its record up when enough others were used after it, and not before", () => {
    const warm = new WarmRecords();
    const record = admitted();
    const value = encodeWorkload(record);
    const first = new HeldWorkload(projected(record), warm, value);
    first.warm();
    for (let index = 1; index < 8192; index++) new HeldWorkload(projected(record), warm, value).warm();
    expect(first.record).toBe(record);
    new HeldWorkload(projected(record), warm, value).warm();
    expect(first.record).not.toBe(record);
    expect(first.record).toEqual(asStored(record));
  });
});
