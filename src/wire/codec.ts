import { Packr } from "msgpackr";
import { copyText } from "../base/shared-text.ts";
import type { GrantSnapshot, WorkloadRecord } from "../core/workload/record.ts";
import { isWorkloadState } from "../core/workload/states.ts";
import { FORMAT_VERSION } from "./version.ts";

/**
 * Stored values (contract 5.2): msgpack that any library reads, a map with its format version `v`. Unknown members of a
 * record survive a read-modify-write. JSON that belongs to callers is kept as JSON text, so that no codec touches its
 * numbers or its keys.
 */
const packr = new Packr({ useRecords: false, mapsAsObjects: true });

/** Any value as msgpack. */
export const packValue = (value: unknown): Uint8Array => packr.pack(value);

/** Undoes {@link packValue}. Throws when the bytes are no msgpack. */
export const unpackValue = (bytes: Uint8Array): unknown => packr.unpack(bytes) as unknown;

/** A record as the store has it. */
export interface StoredWorkload {
  readonly record: WorkloadRecord;
  /** `false`: written in a format, or in a state, that this node does not know; it must not write it (contract 5.2). */
  readonly writable: boolean;
}

/** Many records hold the same grant, and every version of a record the same as the one before. */
const GRANTS_MAX = 4096;
const grants = new Map<string, GrantSnapshot>();

function readGrant(text: string): GrantSnapshot {
  const known = grants.get(text);
  if (known !== undefined) return known;
  if (grants.size >= GRANTS_MAX) grants.clear();
  const grant = JSON.parse(text) as GrantSnapshot;
  grants.set(copyText(text), grant);
  return grant;
}

export const encodeWorkload = (record: WorkloadRecord): Uint8Array =>
  packr.pack({ ...record, v: FORMAT_VERSION, authorization: JSON.stringify(record.authorization) });

/** A record as it was unpacked. */
type StoredRecord = Omit<WorkloadRecord, "authorization"> & { v?: unknown; authorization: unknown };

/** Decodes a workload record; `undefined` when the bytes hold none. */
export function decodeWorkload(bytes: Uint8Array): StoredWorkload | undefined {
  try {
    const value = packr.unpack(bytes) as StoredRecord | null;
    if (typeof value !== "object" || value === null || typeof value.workloadId !== "string") return undefined;
    const { v, authorization } = value;
    // The object is ours alone: taking away what was written last, and changing in place, is far cheaper than a copy.
    delete value.v;
    if (typeof authorization === "string") value.authorization = readGrant(authorization);
    const record = value as WorkloadRecord;
    return { record, writable: v === FORMAT_VERSION && isWorkloadState(record.state) && record.contractVersion <= 2 };
  } catch {
    return undefined;
  }
}

/** A payload kept beside its record. */
export const encodePayload = (json: string): Uint8Array => packr.pack({ v: FORMAT_VERSION, json });

export function decodePayload(bytes: Uint8Array): string | undefined {
  const value = packr.unpack(bytes) as { json?: unknown } | null;
  return typeof value?.json === "string" ? value.json : undefined;
}

/** The reservation of a caller's result id. */
export const encodeResultReservation = (workloadId: string): Uint8Array =>
  packr.pack({ v: FORMAT_VERSION, workloadId });

export function decodeResultReservation(bytes: Uint8Array): string | undefined {
  const value = packr.unpack(bytes) as { workloadId?: unknown } | null;
  return typeof value?.workloadId === "string" ? value.workloadId : undefined;
}

/** What one claimNext request took. */
export const encodeClaimRequest = (
  claims: readonly { readonly workloadId: string; readonly fencingToken: number }[],
): Uint8Array => packr.pack({ v: FORMAT_VERSION, claims });

export function decodeClaimRequest(
  bytes: Uint8Array,
): readonly { readonly workloadId: string; readonly fencingToken: number }[] {
  const value = packr.unpack(bytes) as { claims?: readonly { workloadId: string; fencingToken: number }[] } | null;
  return value?.claims ?? [];
}

/** An authority node's sign of life (contract 5.4). */
export interface NodeHeartbeat {
  readonly nodeId: string;
  /** Tells the processes, and the views, of one node id apart. */
  readonly instance: string;
  /** The node's own clock when it wrote, epoch ms: for the skew check alone. */
  readonly wallMs: number;
  /** Queues that workers wait on at this node, hashed: who else to leave their work to. */
  readonly waiting: readonly number[];
  readonly beat: number;
}

export const encodeNodeHeartbeat = (heartbeat: NodeHeartbeat): Uint8Array =>
  packr.pack({ v: FORMAT_VERSION, ...heartbeat });

export function decodeNodeHeartbeat(bytes: Uint8Array): NodeHeartbeat | undefined {
  try {
    const value = packr.unpack(bytes) as Partial<NodeHeartbeat> | null;
    if (typeof value?.nodeId !== "string") return undefined;
    return {
      nodeId: value.nodeId,
      instance: value.instance ?? "",
      wallMs: value.wallMs ?? 0,
      waiting: value.waiting ?? [],
      beat: value.beat ?? 0,
    };
  } catch {
    return undefined;
  }
}

/**
 * Whether a program of this format may go on with a store, by the store's own record (contract 5.2): the oldest formats
 * that may read and write there. A record that is not understood is none to go on with.
 */
export function isFormatSupported(bytes: Uint8Array): boolean {
  try {
    const value = packr.unpack(bytes) as { v?: unknown; minReader?: unknown; minWriter?: unknown } | null;
    if (value?.v !== 1 || typeof value.minReader !== "number" || typeof value.minWriter !== "number") return false;
    return Math.max(value.minReader, value.minWriter) <= FORMAT_VERSION;
  } catch {
    return false;
  }
}
