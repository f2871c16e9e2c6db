import type { Revocations } from "../grant/revocation.ts";
import { findEnded } from "../grant/snapshot.ts";
import type { WorkerRecord } from "./record.ts";

/**
 * A worker with what it is granted now: nothing once the grant that it was registered under was revoked or superseded, or
 * one that it stems from (contract 4.1: only an active grant authorizes). That it expires takes nothing back: a worker is
 * asked for a grant of its own at each call. Registered again, it has what its new grant gives.
 */
export function standingOf(record: WorkerRecord, revocations: Revocations): WorkerRecord {
  const isEnded = findEnded(record.grants ?? [], record, revocations) !== undefined;
  return isEnded ? { ...record, grantedCapabilities: [] } : record;
}
