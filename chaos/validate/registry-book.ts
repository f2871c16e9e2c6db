import { decodeToken } from "../../src/base/token.ts";
import type { PoolRecord, SlotHold, WorkerRecord } from "../../src/core/worker/record.ts";
import type { EntryLine } from "../history.ts";
import { explainWorker } from "../model/worker-record.ts";
import type { Committed, PoolVersion, RegistryFacts, SlotVersion, WorkerVersion } from "./registry-facts.ts";
import { findTear, type LastOfChain } from "./torn-chain.ts";

interface Owner<Version> {
  readonly id: string;
  readonly versions: Version[];
  readonly slots: SlotVersion[];
}

/** The third identifier of a key: whose it is. */
const ownerOf = (key: string): string => decodeToken(key.split(".")[3] ?? "") ?? "";

const committedOf = ({ shard, revision, at, operations }: EntryLine): Committed => ({
  shard,
  revision,
  storedAt: at,
  operation: operations.at(-1) ?? "",
});

/** Workers, pools and slots, taken in commit by commit. */
export class RegistryBook implements RegistryFacts {
  readonly workers = new Map<string, Owner<WorkerVersion>>();
  readonly pools = new Map<string, Owner<PoolVersion>>();
  readonly gaps: string[] = [];
  versions = 0;
  readonly #lasts = new Map<string, LastOfChain>();
  /** What holds each slot, by its owner and its index. */
  readonly #holds = new Map<string, Map<number, SlotHold>>();

  /** Takes an entry of the families `k`, `p` and `s` in. */
  add(entry: EntryLine): void {
    const { key, revision, operations, worker, pool } = entry;
    const torn = findTear(entry, this.#lasts.get(key));
    if (torn !== undefined) this.gaps.push(`${key}: ${torn}`);
    this.#lasts.set(key, { revision, operations });
    this.versions += 1;
    const family = key[0];
    if (family === "k") this.#addWorker(entry, worker, torn !== undefined);
    else if (family === "p") this.#addPool(entry, pool);
    else this.#addSlot(entry);
  }

  /** Whether a claim was taken by an earlier process than the one that has the worker's name now. */
  isSuperseded({ workerId, claimId }: { readonly workerId: string; readonly claimId: string }): boolean {
    const current = this.workers.get(workerId)?.versions.at(-1)?.record?.incarnation.number ?? 0;
    for (const hold of this.#holds.get(workerId)?.values() ?? [])
      if (hold.claimId === claimId) return hold.incarnation < current;
    return false;
  }

  #addWorker(entry: EntryLine, record: WorkerRecord | undefined, torn: boolean): void {
    const id = ownerOf(entry.key);
    const owner = ownerIn(this.workers, id);
    const before = owner.versions.at(-1)?.record;
    const action = entry.provenance["action"] ?? "";
    const { breaches, ...found } = explainWorker(before, record, { action, active: this.#holds.get(id)?.size ?? 0 });
    const misplaced =
      record !== undefined && record.workerId !== id ? [`${record.workerId} is stored under ${entry.key}`] : [];
    owner.versions.push({
      ...committedOf(entry),
      ...found,
      action,
      // What came in between is not there: the step can't be judged, only the gap.
      breaches: torn ? [] : [...breaches, ...misplaced],
      ...(record === undefined ? {} : { record }),
    });
  }

  #addPool(entry: EntryLine, record: PoolRecord | undefined): void {
    const owner = ownerIn(this.pools, ownerOf(entry.key));
    owner.versions.push({ ...committedOf(entry), ...(record === undefined ? {} : { record }) });
  }

  #addSlot(entry: EntryLine): void {
    const ownerId = ownerOf(entry.key);
    const index = Number(entry.key.slice(entry.key.lastIndexOf(".") + 1));
    const holds = this.#holds.get(ownerId) ?? new Map<number, SlotHold>();
    this.#holds.set(ownerId, holds);
    const before = holds.get(index);
    const { slot } = entry;
    const held = slot?.held;
    if (held === undefined) holds.delete(index);
    else holds.set(index, held);
    const owner = ownerId.startsWith("pool_") ? ownerIn(this.pools, ownerId) : ownerIn(this.workers, ownerId);
    if (slot === undefined) {
      // The owner's own mark stands before those of its slots.
      const last = owner.versions.at(-1);
      if (last?.record !== undefined || last?.operation !== entry.operations.at(-1))
        this.gaps.push(`${entry.key}: a slot was removed without its owner`);
    } else if (slot.ownerId !== ownerId || slot.index !== index)
      this.gaps.push(`${entry.key}: another slot is stored under it`);
    owner.slots.push({
      ...committedOf(entry),
      ownerId,
      index,
      ...(before === undefined ? {} : { before }),
      ...(held === undefined ? {} : { held }),
    });
  }
}

function ownerIn<Version>(owners: Map<string, Owner<Version>>, id: string): Owner<Version> {
  const known = owners.get(id);
  if (known !== undefined) return known;
  const owner: Owner<Version> = { id, versions: [], slots: [] };
  owners.set(id, owner);
  return owner;
}
