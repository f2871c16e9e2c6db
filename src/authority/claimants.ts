import { MandateError, type Refusal } from "../core/errors.ts";
import { slotEvidence } from "../core/worker/claim-slots.ts";
import {
  findIneligibility,
  type Ineligibility,
  type PlacementNeed,
  type PoolSeen,
} from "../core/worker/eligibility.ts";
import { checkIncarnation } from "../core/worker/incarnation.ts";
import { denyPlacement } from "../core/worker/placement.ts";
import type { Slot, WorkerRecord } from "../core/worker/record.ts";
import { countOpenSlots } from "../core/worker/slots.ts";
import { workerKey } from "../store/keys.ts";
import { abilityOf, type Ability, type Needs } from "../store/projection/ability.ts";
import type { SlotGrab, Slots } from "./slots.ts";
import { isRegisteredId, workerNotFound, type WorkerRecords, type WorkerAsked } from "./worker-records.ts";

/** Who asks for a claim, as the view has him at any moment. */
export interface Claimant {
  readonly ability: Ability;
  capabilities(): readonly string[];
  /** How many more claims he may have. */
  free(): number;
  /** Grabs the slots of one more claim; nothing for whoever has none, `"none"` when all are taken. */
  grab(need: PlacementNeed): SlotGrab | "none" | undefined;
  /** The refusal once a later process has taken his name, as the view has it: he waits in vain. */
  superseded(): Refusal | undefined;
  /** Reads his record from the store, where the view can't be made newer than his request (contract 5.4). */
  refresh(): Promise<void>;
}

/** What a claim's event tells of its slots. */
export const evidenceOf = (grab: SlotGrab | undefined): { readonly [name: string]: string } | undefined =>
  grab === undefined ? undefined : slotEvidence(grab.slots);

/** Somebody who is no worker of the registry: he says himself what he can do, and nothing counts what he holds. */
const unregistered = (capabilities: readonly string[]): Claimant => ({
  ability: abilityOf(capabilities),
  capabilities: () => capabilities,
  free: () => Number.POSITIVE_INFINITY,
  grab: () => undefined,
  superseded: () => undefined,
  refresh: () => Promise.resolve(),
});

/** Conditions that pass by themselves: a worker may wait for their end. */
const passing: readonly Ineligibility["reason"][] = ["capacity", "pool_capacity"];

/** A worker that asks for work, as the registry has it. Its record may change while it waits. */
class RegisteredClaimant implements Claimant {
  readonly ability: Ability;
  readonly #asked: WorkerAsked;
  readonly #key: string;
  readonly #records: WorkerRecords;
  readonly #slots: Slots;
  /** The name of its kind, and what it was derived from: thousands of workers may be looked at for one piece of work. */
  #kind: { readonly name: string; readonly record: WorkerRecord | undefined; readonly pools: number } | undefined;

  /** Whether it has a free slot, and by what: asked once for every lane of a queue. */
  #room: { readonly record: WorkerRecord; readonly slots: readonly Slot[]; readonly isLeft: boolean } | undefined;

  constructor(asked: WorkerAsked, parts: { readonly records: WorkerRecords; readonly slots: Slots }) {
    this.#asked = asked;
    this.#key = workerKey(asked, asked.workerId);
    this.#records = parts.records;
    this.#slots = parts.slots;
    const nameOfKind = (): string => this.#nameOfKind();
    this.ability = {
      get name() {
        return nameOfKind();
      },
      accepts: (needs) => this.#findIneligibility(needs) === undefined,
    };
  }

  capabilities(): readonly string[] {
    return this.#record()?.grantedCapabilities ?? [];
  }

  free(): number {
    const held = this.#records.presentAt(this.#key);
    if (held === undefined || this.superseded() !== undefined || !this.#slots.areKnown(held)) return 0;
    const record = held.value;
    if (record.lifecycle !== "READY" || record.health !== "HEALTHY") return 0;
    return this.#slots.free(record, record.workerId, record.concurrency);
  }

  grab(need: PlacementNeed): SlotGrab | "none" {
    const held = this.#records.presentAt(this.#key);
    if (held === undefined || this.#findIneligibility(need) !== undefined) return "none";
    const poolId = need.placement?.poolId;
    const pool = poolId === undefined ? undefined : this.#records.presentPool(this.#asked, poolId);
    return this.#slots.grab(held, pool) ?? "none";
  }

  superseded(): Refusal | undefined {
    const record = this.#records.presentAt(this.#key)?.value;
    return record === undefined ? undefined : checkIncarnation(record, this.#asked.incarnation);
  }

  async refresh(): Promise<void> {
    await this.#records.fresh(this.#asked);
  }

  /** Workers of one kind may be given the same: what tells them apart is whether they are free. */
  #nameOfKind(): string {
    const record = this.#record();
    const pools = this.#records.poolChanges();
    if (this.#kind?.record !== record || this.#kind?.pools !== pools)
      this.#kind = { name: this.#deriveKind(record), record, pools };
    return this.#kind.name;
  }

  #deriveKind(record: WorkerRecord | undefined): string {
    if (record === undefined) return this.#asked.workerId;
    const { grantedCapabilities, workloadKinds, labels, workerId } = record;
    return JSON.stringify([grantedCapabilities, workloadKinds, labels, this.#records.viewedPoolIdsOf(workerId)]);
  }

  /** The worker as it is now; nothing once a later process has its name. */
  #record(): WorkerRecord | undefined {
    const record = this.#records.presentAt(this.#key)?.value;
    if (record === undefined || checkIncarnation(record, this.#asked.incarnation) !== undefined) return undefined;
    return this.#records.standing(record);
  }

  #poolOf({ placement }: Needs): PoolSeen | undefined {
    return placement?.poolId === undefined ? undefined : this.#records.viewedPool(this.#asked, placement.poolId);
  }

  #findIneligibility(needs: Needs): Ineligibility | undefined {
    const record = this.#record();
    if (record === undefined) return { reason: "scope", message: "it is not registered" };
    const { tenantId, applicationId } = record;
    const { definitionId, capabilities, placement } = needs;
    const need = {
      workloadId: "",
      tenantId,
      applicationId,
      definitionId,
      capabilities,
      ...(placement === undefined ? {} : { placement }),
    };
    const slots = this.#slots.of(record, record.workerId);
    if (this.#room?.record !== record || this.#room.slots !== slots)
      this.#room = { record, slots, isLeft: countOpenSlots(record.concurrency, slots) > 0 };
    // What it holds matters only where that is all it has room for.
    return findIneligibility({ record, slots: this.#room.isLeft ? [] : slots }, need, this.#poolOf(needs));
  }
}

/** Finds out who asks for work. */
export class Claimants {
  readonly #records: WorkerRecords;
  readonly #slots: Slots;

  constructor(parts: { readonly records: WorkerRecords; readonly slots: Slots }) {
    this.#records = parts.records;
    this.#slots = parts.slots;
  }

  /**
   * Whoever asks for the next work (contract 2.4). A worker whose slots are all taken may wait; one that takes no work,
   * or of an earlier incarnation, is refused.
   *
   * @throws MandateError `WORKER_NOT_FOUND`, `WORKER_SUPERSEDED`, `MESH_PLACEMENT_DENIED`.
   */
  async of(asked: WorkerAsked & { readonly capabilities: readonly string[] }): Promise<Claimant> {
    if (!isRegisteredId(asked.workerId)) return unregistered(asked.capabilities);
    const viewed = this.#records.viewed(asked)?.value;
    if (viewed === undefined || this.#refusalOf(viewed, asked) !== undefined) {
      // A refusal must be built on what is at least as new as the request.
      const read = await this.#records.fresh(asked);
      if (read === undefined) throw workerNotFound(asked.workerId);
      const refusal = this.#refusalOf(read, asked);
      if (refusal !== undefined) throw MandateError.of(refusal);
    }
    return new RegisteredClaimant(asked, { records: this.#records, slots: this.#slots });
  }

  #refusalOf(record: WorkerRecord, asked: WorkerAsked): ReturnType<typeof checkIncarnation> {
    const superseded = checkIncarnation(record, asked.incarnation);
    if (superseded !== undefined) return superseded;
    const { tenantId, applicationId, workerId } = record;
    const anything = { workloadId: "", tenantId, applicationId, definitionId: "", capabilities: [] };
    const plain = { ...record, workloadKinds: [] };
    const found = findIneligibility({ record: plain, slots: [] }, anything, undefined);
    return found === undefined || passing.includes(found.reason) ? undefined : denyPlacement(workerId, found);
  }
}
