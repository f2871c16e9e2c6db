import { LEASE_GRACE_MAX_MS } from "../../src/core/workload/fence.ts";
import { addedEvents, processOf, type History } from "./history.ts";
import type { World } from "./world.ts";

/** How long a commit may be under way after it was decided: it is tried for ten seconds, and a try may be late, ms. */
const UNDER_WAY_MAX_MS = 20_000;
/** How late the store's time may be known: a round trip and the way to a follower, ms. */
const TOLERANCE_MS = 500;

/**
 * No lease is taken by a process that could not have taken its renewal: it had been ready for the lease's length, or for
 * half a minute (contract 5.5), at a moment from which the commit may stem.
 */
export function judgeGrace(world: Pick<World, "turns">, history: History): readonly string[] {
  const faults: string[] = [];
  for (const [workloadId, versions] of history.versions)
    for (const version of versions) {
      const { action, before, at, operationId, revision } = version;
      const claim = before?.currentClaim;
      // The claims of a process that has a successor go at once.
      const isLease = addedEvents(version).some(({ evidence }) => evidence["recoveryReason"] === "lease_expired");
      if (action !== "recover" || claim === undefined || !isLease) continue;
      const nonce = processOf(operationId);
      const lengthMs = Math.min(claim.expiresAt - claim.lastHeartbeat, LEASE_GRACE_MAX_MS);
      const turns = world.turns.get(nonce) ?? [];
      const couldDecide = turns.some(({ at: since, ready }, index) => {
        const until = turns[index + 1]?.at ?? Number.POSITIVE_INFINITY;
        const from = Math.max(since + lengthMs - TOLERANCE_MS, at - UNDER_WAY_MAX_MS);
        return ready && from <= Math.min(until, at);
      });
      if (!couldDecide)
        faults.push(`${workloadId} at ${revision}: ${nonce} recovered a lease it could not have renewed`);
    }
  return faults;
}

/** What only the holder of a lease may do. */
const holders: readonly string[] = ["start", "heartbeat", "checkpoint", "complete", "fail", "confirm-cancel"];

/**
 * No worker's call is granted after the end of its lease, unless by a process that lets it live on: one that was not
 * able to serve for all of the lease's length, or half a minute, before it decided (contract 1.8, 5.5).
 */
export function judgeLateWrites(world: Pick<World, "turns">, history: History): readonly string[] {
  const faults: string[] = [];
  for (const [workloadId, versions] of history.versions)
    for (const { action, before, operationId, record, revision } of versions) {
      const claim = before?.currentClaim;
      // The instant of the decision, by the process's own view of the store's time.
      const decidedAt = record.updatedAt;
      if (!holders.includes(action) || claim === undefined || decidedAt < claim.expiresAt) continue;
      const lengthMs = Math.min(claim.expiresAt - claim.lastHeartbeat, LEASE_GRACE_MAX_MS);
      const turns = world.turns.get(processOf(operationId)) ?? [];
      const served = turns.some(({ at: since, ready }, index) => {
        const until = turns[index + 1]?.at ?? Number.POSITIVE_INFINITY;
        return ready && since <= decidedAt - lengthMs - TOLERANCE_MS && decidedAt + TOLERANCE_MS < until;
      });
      if (served)
        faults.push(`${workloadId} at ${revision}: ${action} ${decidedAt - claim.expiresAt} ms after its lease`);
    }
  return faults;
}
