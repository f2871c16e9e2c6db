import type { WorkloadRecord } from "../../src/core/workload/record.ts";
import type { PoolRecord, Slot, WorkerRecord } from "../../src/core/worker/record.ts";
import type { LoggedCommit } from "../../src/store/simulated/shard-log.ts";
import { decodeWorkload } from "../../src/wire/codec.ts";
import { decodePool, decodeSlot, decodeWorker } from "../../src/wire/worker-codec.ts";

const isRegistered = (workerId: string): boolean => /^worker_[0-9a-f]{24}$/.test(workerId);

/** How soon a claim must go once its process was superseded, virtual ms: longer than anything goes wrong. */
const RELEASED_WITHIN_MS = 60_000;

/** What the log says of workers, pools and slots, commit by commit, and what is wrong with it. */
class Book {
  readonly faults: string[] = [];
  readonly workers = new Map<string, WorkerRecord | undefined>();
  readonly pools = new Map<string, PoolRecord | undefined>();
  readonly slots = new Map<string, Slot>();
  readonly workloads = new Map<string, WorkloadRecord>();
  taken = 0;
  /** Claims of processes that have a successor, with its registration's instant. */
  readonly #superseded = new Map<string, number>();

  commit({ entries, operationId, at }: LoggedCommit): void {
    const say = (fault: string): void => void this.faults.push(`${operationId}: ${fault}`);
    const touched = new Map<string, { readonly before: WorkloadRecord | undefined; readonly after: WorkloadRecord }>();
    // The commit is one moment: what it says of workers counts for its slots only if the claim could see it, so slots come first.
    for (const { key, value } of entries) {
      if (!key.startsWith("w.")) continue;
      const after = decodeWorkload(value)?.record;
      if (after === undefined) continue;
      touched.set(after.workloadId, { before: this.workloads.get(after.workloadId), after });
      this.workloads.set(after.workloadId, after);
    }
    for (const { key, value } of entries) {
      if (!key.startsWith("s.")) continue;
      const slot = decodeSlot(value)?.value;
      if (slot !== undefined) this.#slot(slot, touched, say);
    }
    for (const [claimId, since] of this.#superseded) {
      if (this.#holding(claimId).length === 0) this.#superseded.delete(claimId);
      else if (at > since + RELEASED_WITHIN_MS) {
        say(`${claimId} is held ${at - since} ms after its process was superseded`);
        this.#superseded.delete(claimId);
      }
    }
    for (const { before, after } of touched.values()) this.#claims(before, after, say);
    for (const { key, value } of entries) {
      const name = key.split(".").at(-1) ?? "";
      if (key.startsWith("k.")) {
        this.#worker(name, decodeWorker(value)?.value, say);
        this.#noteSuperseded(name, at);
      }
      if (key.startsWith("p.")) this.pools.set(name, decodePool(value)?.value);
    }
  }

  /** Held slots of an owner. */
  held(ownerId: string): readonly Slot[] {
    return [...this.slots.values()].filter((slot) => slot.ownerId === ownerId && slot.held !== undefined);
  }

  #slot(
    slot: Slot,
    touched: ReadonlyMap<string, { readonly before: WorkloadRecord | undefined; readonly after: WorkloadRecord }>,
    say: (fault: string) => void,
  ): void {
    const { ownerId, index, held } = slot;
    const before = this.slots.get(`${ownerId} ${index}`)?.held;
    this.slots.set(`${ownerId} ${index}`, slot);
    if (held === undefined) {
      if (before === undefined) say(`slot ${index} of ${ownerId} was freed and was free`);
      else if (this.workloads.get(before.workloadId)?.currentClaim?.claimId === before.claimId)
        say(`slot ${index} of ${ownerId} was freed while ${before.claimId} is current`);
      return;
    }
    this.taken += 1;
    if (before !== undefined) say(`slot ${index} of ${ownerId} was taken from ${before.claimId}`);
    if (touched.get(held.workloadId)?.after.currentClaim?.claimId !== held.claimId)
      say(`slot ${index} of ${ownerId} was taken without its claim`);
    const limit = this.workers.get(ownerId)?.concurrency ?? this.pools.get(ownerId)?.maxConcurrency;
    const active = this.held(ownerId).length;
    if (limit === undefined) say(`a slot of ${ownerId}, which does not exist, was taken`);
    else if (index >= limit || active > limit) say(`slot ${index} of ${ownerId} was taken: ${active} of ${limit}`);
  }

  /** Claims that a commit begins and ends, by workers of the registry. */
  #claims(before: WorkloadRecord | undefined, after: WorkloadRecord, say: (fault: string) => void): void {
    const [old, next] = [before?.currentClaim, after.currentClaim];
    if (old?.claimId === next?.claimId) return;
    if (old !== undefined && this.#holding(old.claimId).length > 0) say(`${old.claimId} ended and keeps its slot`);
    if (next === undefined || !isRegistered(next.workerId)) return;
    const worker = this.workers.get(next.workerId);
    const poolId = after.placement?.poolId;
    const wanted = poolId === undefined ? [next.workerId] : [next.workerId, poolId];
    const owners = this.#holding(next.claimId).map(({ ownerId }) => ownerId);
    if (owners.toSorted().join() !== wanted.toSorted().join()) say(`${next.claimId} holds slots of ${owners.join()}`);
    if (worker === undefined) say(`${next.workerId}, which does not exist, claimed`);
    else if (worker.lifecycle !== "READY" || worker.health !== "HEALTHY")
      say(`${next.workerId} claimed while ${worker.lifecycle} and ${worker.health}`);
    const missing = after.capabilities.filter((name) => worker?.grantedCapabilities.includes(name) !== true);
    if (missing.length > 0) say(`${next.workerId} claimed without ${missing.join()}`);
  }

  #worker(workerId: string, record: WorkerRecord | undefined, say: (fault: string) => void): void {
    const before = this.workers.get(workerId);
    this.workers.set(workerId, record);
    if (record === undefined && this.held(workerId).length > 0) say(`${workerId} was removed with claims`);
    if (before !== undefined && record !== undefined && record.incarnation.number < before.incarnation.number)
      say(`${workerId} went back to incarnation ${record.incarnation.number}`);
  }

  #noteSuperseded(workerId: string, at: number): void {
    const current = this.workers.get(workerId)?.incarnation.number ?? 0;
    for (const { held } of this.held(workerId))
      if (held !== undefined && held.incarnation < current && !this.#superseded.has(held.claimId))
        this.#superseded.set(held.claimId, at);
  }

  #holding(claimId: string): readonly Slot[] {
    return [...this.slots.values()].filter(({ held }) => held?.claimId === claimId);
  }
}

/** What is wrong with workers, pools and slots in the log, and how often a slot was taken. */
export function judgeRegistry(commits: readonly LoggedCommit[]): {
  readonly faults: readonly string[];
  readonly taken: number;
  readonly workers: ReadonlyMap<string, WorkerRecord | undefined>;
} {
  const book = new Book();
  for (const commit of commits) book.commit(commit);
  for (const { ownerId, index, held } of book.slots.values()) {
    if (held === undefined) continue;
    const current = book.workloads.get(held.workloadId)?.currentClaim;
    if (current?.claimId !== held.claimId) book.faults.push(`in the end slot ${index} of ${ownerId} is held by nobody`);
    const now = book.workers.get(held.workerId)?.incarnation.number ?? 0;
    if (held.incarnation < now) book.faults.push(`in the end ${held.claimId} of a process that was superseded is held`);
  }
  return { faults: book.faults, taken: book.taken, workers: book.workers };
}
