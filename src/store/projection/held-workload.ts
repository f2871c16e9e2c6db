import { assert } from "../../base/assert.ts";
import { shareText } from "../../base/shared-text.ts";
import type { WorkloadRecord } from "../../core/workload/record.ts";
import { decodeWorkload } from "../../wire/codec.ts";
import { outlineOf, type Outline } from "./outline.ts";
import type { Projected } from "./projected.ts";

/** How many workloads keep their decoded record, the last that were used. */
const WARM_MAX = 8192;

/** Workloads with a decoded record, in a ring: whoever is overtaken gives it up. */
export class WarmRecords {
  readonly #ring: (HeldWorkload | undefined)[] = [];
  #next = 0;

  add(workload: HeldWorkload): void {
    const overtaken = this.#ring[this.#next];
    this.#ring[this.#next] = workload;
    this.#next = (this.#next + 1) % WARM_MAX;
    if (overtaken !== workload) overtaken?.cool();
  }
}

/** What is not needed to find a workload: its record and its ring, both as the store has them. */
interface Packed {
  /** The stored value, then the ring as text. */
  readonly bytes: Uint8Array;
  readonly valueLength: number;
}

/**
 * A workload as the view keeps it. A decoded record takes three times the room of its stored value, and a million of
 * them more than a process may have. So only those that were used lately stay decoded; of the others the view keeps the
 * stored bytes, decoded anew when somebody asks, and the outline. A node's own commit stays decoded until the log has
 * delivered its bytes.
 */
export class HeldWorkload implements Projected {
  readonly key: string;
  readonly shard: number;
  readonly revision: number;
  readonly writable: boolean;
  readonly node: string | undefined;
  readonly action: string | undefined;
  readonly outline: Outline;
  readonly #warm: WarmRecords;
  #record: WorkloadRecord | undefined;
  #operations: readonly string[] | undefined;
  #packed: Packed | undefined;
  #isCold = false;

  /** `value`: the stored bytes, when they are at hand; a copy is kept. */
  constructor(workload: Projected, warm: WarmRecords, value?: Uint8Array) {
    this.outline = outlineOf(workload.record);
    this.key = workload.key;
    this.shard = workload.shard;
    this.revision = workload.revision;
    this.writable = workload.writable;
    this.node = workload.node === undefined ? undefined : shareText(workload.node);
    this.action = workload.action === undefined ? undefined : shareText(workload.action);
    this.#record = workload.record;
    this.#operations = workload.operations;
    this.#warm = warm;
    if (value !== undefined) this.keep(value);
  }

  get record(): WorkloadRecord {
    if (this.#record !== undefined) return this.#record;
    assert(this.#packed !== undefined, "a workload without a record has its bytes");
    const { bytes, valueLength } = this.#packed;
    const stored = decodeWorkload(bytes.subarray(0, valueLength));
    assert(stored !== undefined, "what was decoded once can be decoded again");
    this.#record = stored.record;
    this.warm();
    return stored.record;
  }

  get operations(): readonly string[] {
    if (this.#operations !== undefined) return this.#operations;
    assert(this.#packed !== undefined, "a workload without its ring has its bytes");
    const { bytes, valueLength } = this.#packed;
    const ring = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1", valueLength);
    return ring === "" ? [] : ring.split(",");
  }

  /** The log has delivered the value. */
  keep(value: Uint8Array): void {
    if (this.#packed !== undefined || this.#operations === undefined) return;
    // Ids of operations are ASCII without a comma (see store.ts).
    const ring = this.#operations.join(",");
    const bytes = Buffer.allocUnsafe(value.length + ring.length);
    bytes.set(value);
    bytes.write(ring, value.length, "latin1");
    this.#packed = { bytes, valueLength: value.length };
    if (this.#isCold) this.cool();
  }

  /** Keeps the decoded record for a while. */
  warm(): void {
    this.#isCold = false;
    this.#warm.add(this);
  }

  /** Gives the decoded record up, now or as soon as the bytes are here. */
  cool(): void {
    this.#isCold = true;
    if (this.#packed === undefined) return;
    this.#record = undefined;
    this.#operations = undefined;
  }
}
