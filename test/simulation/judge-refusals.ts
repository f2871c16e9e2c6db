import type { WorkloadRecord } from "../../src/core/workload/record.ts";
import { rearmsOf } from "../../src/core/workload/retry-policy.ts";
import type { History, Version } from "./history.ts";
import type { Try, Wish } from "./ledger.ts";

/** What was the case at some moment of a try: the record then, and what the caller had asked for. */
interface Moment {
  readonly record: WorkloadRecord;
  readonly wish: Wish;
  readonly tried: Try;
  readonly all: ReadonlyMap<string, readonly Version[]>;
}

/** How late a node may know the store's time: a round trip and the way to a follower, ms. */
const LATE_MAX_MS = 500;

type Truth = (moment: Moment) => boolean;

const fenceDiffers: Truth = ({ record: { currentClaim }, wish }) =>
  currentClaim !== undefined &&
  (["claimId", "workerId", "fencingToken"] as const).some((name) => currentClaim[name] !== wish.arguments[name]);

const expiredNow: Truth = ({ record, tried }) =>
  record.history.some(
    ({ to, actor, at }) => to === "TIMED_OUT" && actor === "authority.deadline" && at <= (tried.endedAt ?? at),
  );

const movable: Readonly<Record<string, readonly WorkloadRecord["state"][]>> = {
  start: ["CLAIMED"],
  checkpoint: ["RUNNING", "CHECKPOINTED"],
  complete: ["RUNNING", "CHECKPOINTED"],
  fail: ["CLAIMED", "RUNNING", "CHECKPOINTED"],
  confirmCancel: ["CANCELLATION_REQUESTED"],
  cancel: [
    "CREATED",
    "READY",
    "AWAITING_APPROVAL",
    "FAILED",
    "DEAD_LETTER",
    "CLAIMED",
    "RUNNING",
    "CHECKPOINTED",
    "CANCELLATION_REQUESTED",
  ],
  timeout: ["READY", "CLAIMED", "RUNNING", "CHECKPOINTED"],
  retry: ["FAILED", "DEAD_LETTER", "TIMED_OUT"],
};

/** When a refusal is true. */
const truths: Readonly<Record<string, Truth>> = {
  IDEMPOTENCY_KEY_REUSED: ({ record, wish }) => record.definitionRevision !== wish.arguments["definitionRevision"],
  WORKLOAD_TRANSITION_DENIED: ({ record, wish }) => movable[wish.name]?.includes(record.state) !== true,
  WORKLOAD_NOT_READY: ({ record }) => record.state !== "READY",
  WORKLOAD_NOT_YET_ELIGIBLE: ({ record, tried }) => (record.nextAttemptAt ?? 0) + LATE_MAX_MS > tried.startedAt,
  WORKLOAD_DEPENDENCY_PENDING: ({ record, all, tried }) =>
    record.dependencies.some(({ workloadId, requiredState }) =>
      momentsOf(all.get(workloadId) ?? [], tried).some((state) => state?.state !== requiredState),
    ),
  WORKLOAD_CAPABILITY_DENIED: ({ record, wish }) =>
    record.capabilities.some((needed) => !(wish.arguments["capabilities"] as readonly string[]).includes(needed)),
  WORKLOAD_ATTEMPTS_EXHAUSTED: ({ record }) => record.state === "DEAD_LETTER",
  // A claim that was lost is refused to its repeat, whoever holds the work by then.
  WORKLOAD_CLAIM_INVALID: ({ record, wish }) => record.currentClaim?.workerId !== wish.arguments["workerId"],
  WORKLOAD_STALE_FENCE: fenceDiffers,
  WORKLOAD_LEASE_EXPIRED: ({ record, tried }) => (record.currentClaim?.expiresAt ?? 0) <= (tried.endedAt ?? 0),
  WORKLOAD_TIMED_OUT: expiredNow,
  WORKLOAD_RESULT_DUPLICATE: ({ record, wish, all }) =>
    [...all.values()].some(
      (versions) =>
        versions.at(-1)?.record.result?.resultId === wish.arguments["resultId"] &&
        versions.at(-1)?.record.workloadId !== record.workloadId,
    ),
  WORKLOAD_RESULT_CONFLICT: ({ record }) => record.result !== undefined,
  WORKLOAD_APPROVAL_PENDING: ({ record }) => record.approval !== undefined && record.approval.decision === undefined,
  WORKLOAD_REJECTED: ({ record }) => record.state === "REJECTED",
  WORKLOAD_APPROVAL_DECIDED: ({ record, wish }) =>
    record.approval?.decision !== undefined && record.approval.decision.outcome !== wish.arguments["outcome"],
  WORKLOAD_APPROVAL_NOT_ACTIONABLE: ({ record }) => record.state !== "AWAITING_APPROVAL",
  WORKLOAD_RETRY_EXHAUSTED: ({ record }) => rearmsOf(record) >= record.retryPolicy.maxAttempts,
};

/** What the workload was at the moments of a try: as it stood when the try began, and each version until it ended. */
function momentsOf(versions: readonly Version[], tried: Try): readonly (WorkloadRecord | undefined)[] {
  const end = tried.endedAt ?? Number.POSITIVE_INFINITY;
  const standing = versions.findLast(({ at }) => at < tried.startedAt)?.record;
  return [standing, ...versions.filter(({ at }) => at >= tried.startedAt && at <= end).map(({ record }) => record)];
}

/**
 * Nobody is told what was not the case at any moment between his question and the answer: an old view never leaks
 * through a refusal (contract 5.4).
 */
export function judgeRefusals(wishes: readonly Wish[], history: History): readonly string[] {
  return wishes.flatMap((wish) =>
    wish.tries.flatMap((tried) => {
      const { heard } = tried;
      if (heard.kind !== "refused" || !heard.definite || wish.workloadId === undefined) return [];
      const moments = momentsOf(history.versions.get(wish.workloadId) ?? [], tried);
      const say = (what: string): string[] => [
        `${wish.name} ${wish.mark} on ${wish.workloadId}: ${heard.code}, and ${what}`,
      ];
      if (heard.code === "WORKLOAD_NOT_FOUND") return moments[0] === undefined ? [] : say("it existed by then");
      // These speak of the node or of the store, not of the workload.
      if (["AUTHORITY_NOT_READY", "WORKLOAD_STORAGE_FAILURE", "WORKLOAD_CONFLICT"].includes(heard.code)) return [];
      // And these of a worker, whom unit tests and chaos look after.
      if (/^(MESH|WORKER)_/.test(heard.code)) return [];
      const isTrue = truths[heard.code];
      if (isTrue === undefined) return say("nobody expects it");
      const all = history.versions;
      const states = moments.map((record) => record?.state ?? "absent").join(", ");
      const found = moments.some((record) => record !== undefined && isTrue({ record, wish, tried, all }));
      return found ? [] : say(`it was ${states} at ${tried.nodeId} from ${tried.startedAt} to ${tried.endedAt}`);
    }),
  );
}
