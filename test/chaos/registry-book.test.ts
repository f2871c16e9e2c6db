/**
 * Goal: the judge takes the removal of a slot for what it is, and only with the owner whom it belongs to.
 * Method: entries of a pool and of its slot, as they are committed.
 */
import { expect, it } from "vitest";
import type { EntryLine } from "../../chaos/history.ts";
import { RegistryBook } from "../../chaos/validate/registry-book.ts";
import { encodeToken } from "../../src/base/token.ts";

const poolId = "pool_0123456789abcdef01234567";
const prefix = ["acme", "shop", poolId].map(encodeToken).join(".");

/** Three commits by their operations: the pool with a free slot, the slot's end, the pool's end. */
function gapsAfter(slotEnds: string, poolEnds: string): readonly string[] {
  const common = { line: "entry", shard: 0, at: 1, provenance: {} } as const;
  const pool = { poolId, tenantId: "acme", applicationId: "shop", name: "presses", capabilities: [], createdAt: 1 };
  const entries: EntryLine[] = [
    {
      ...common,
      revision: 1,
      key: `p.${prefix}`,
      operations: ["1"],
      pool: { ...pool, requiredLabels: {}, workerIds: [] },
    },
    { ...common, revision: 2, key: `s.${prefix}.0`, operations: ["2"], slot: { ownerId: poolId, index: 0 } },
    { ...common, revision: 3, key: `p.${prefix}`, operations: ["1", poolEnds] },
    { ...common, revision: 4, key: `s.${prefix}.0`, operations: ["2", slotEnds] },
  ];
  const book = new RegistryBook();
  for (const entry of entries) book.add(entry);
  return book.gaps;
}

it("a slot goes in the commit in which its owner goes, and in no other", () => {
  expect(gapsAfter("3", "3")).toEqual([]);
  expect(gapsAfter("4", "3")).toEqual([`s.${prefix}.0: a slot was removed without its owner`]);
});
