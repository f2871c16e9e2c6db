import type { Answers } from "../../src/authority/api.ts";
import type { WorkloadRecord } from "../../src/core/workload/record.ts";
import { sameValue } from "../../src/core/workload/same-value.ts";
import { OPERATION_RING } from "../../src/store/store.ts";
import { effectsOf, type Effect } from "./effects.ts";
import { nodeOf, textOf, type History, type Version } from "./history.ts";
import { answersOf, surelyNothing, type Try, type Wish } from "./ledger.ts";

/** The kind of effect that a call has. */
const kindOf: Partial<Record<Wish["name"], Effect["kind"]>> = {
  admit: "admit",
  claim: "claim",
  claimNext: "claim",
  start: "start",
  checkpoint: "checkpoint",
  complete: "complete",
  fail: "fail",
  confirmCancel: "confirmCancel",
  cancel: "cancel",
  timeout: "timeout",
  retry: "retry",
  decide: "decide",
};

/** Judges what everybody was told by what was committed. */
export function judgeWishes(wishes: readonly Wish[], history: History): readonly string[] {
  const byMark = new Map<string, Effect[]>();
  for (const effect of effectsOf(history)) {
    const known = byMark.get(`${effect.kind} ${effect.mark}`);
    if (known === undefined) byMark.set(`${effect.kind} ${effect.mark}`, [effect]);
    else known.push(effect);
  }
  const faults: string[] = [];
  for (const wish of wishes) {
    const kind = kindOf[wish.name];
    const mark =
      wish.name === "start" || wish.name === "confirmCancel" ? String(wish.arguments["workerId"]) : wish.mark;
    const effects = (byMark.get(`${kind} ${mark}`) ?? []).filter(
      ({ version }) => wish.workloadId === undefined || version.record.workloadId === wish.workloadId,
    );
    for (const fault of judgeWish(wish, effects, history))
      faults.push(`${wish.name} ${wish.mark} on ${wish.workloadId ?? "the queue"}: ${fault}`);
  }
  return [...faults, ...judgeCreations(wishes)];
}

function judgeWish(wish: Wish, effects: readonly Effect[], history: History): readonly string[] {
  const faults: string[] = [];
  for (const { heard } of wish.tries)
    if (heard.kind === "refused" && (heard.code.startsWith("bug") || heard.code === "INTERNAL_ERROR"))
      faults.push(`it met a bug: ${heard.code}`);
  // A start shares its mark with the claim that started the work itself, so its absence says nothing about it.
  if (wish.name !== "start" && wish.name !== "confirmCancel") {
    if (surelyNothing(wish) && effects.length > 0)
      faults.push(`it was surely refused (${codesOf(wish)}), and is committed at ${effects[0]?.version.revision}`);
    faults.push(...judgeOwnWord(wish, effects));
  }
  faults.push(...judgeOneEffect(wish, effects), ...judgeForgotten(wish, effects, history));
  const answers = answersOf(wish);
  const [first] = answers;
  if (wish.name === "claimNext") faults.push(...judgeHandedOut(wish, effects));
  for (const answer of answers) {
    if (!sameAnswer(wish, first, answer)) faults.push(`it was answered in two ways: ${shown(first)}, ${shown(answer)}`);
    const fault = findMissing(wish, answer, history);
    if (fault !== undefined) faults.push(fault);
  }
  return faults;
}

/** Whoever was answered at his first try was told of everything that was taken in his name. */
function judgeHandedOut(wish: Wish, effects: readonly Effect[]): readonly string[] {
  const [answer] = answersOf(wish) as Answers["claimNext"][];
  if (wish.tries.length !== 1 || answer === undefined || wish.arguments["max"] !== 1) return [];
  return effects.flatMap(({ version: { record } }) =>
    answer.some(({ workloadId }) => workloadId === record.workloadId)
      ? []
      : [`it was answered ${shown(answer)}, and ${record.workloadId} was taken too`],
  );
}

/**
 * A node that was asked but once tells what it did itself: it neither refuses for good what it committed, nor says that
 * somebody else created what it created.
 */
function judgeOwnWord(wish: Wish, effects: readonly Effect[]): readonly string[] {
  return wish.tries.flatMap(({ nodeId, heard }) => {
    if (wish.tries.filter((other) => other.nodeId === nodeId).length > 1) return [];
    const own = effects.find(({ version }) => nodeOf(version.operationId) === nodeId);
    if (own === undefined) return [];
    const { revision } = own.version;
    if (heard.kind === "refused" && heard.definite)
      return [`${nodeId} refused it with ${heard.code}, and had committed it at ${revision}`];
    if (heard.kind === "answered" && wish.name === "admit" && !(heard.answer as Answers["admit"]).created)
      return [`${nodeId} said that it was there already, and had created it at ${revision}`];
    return [];
  });
}

const codesOf = ({ tries }: Wish): string =>
  tries.map(({ heard }) => (heard.kind === "refused" ? heard.code : heard.kind)).join(", ");

const shown = (value: unknown): string => (JSON.stringify(value) ?? "undefined").slice(0, 300);

/** At most one effect for each wish that may be repeated; a claimNext may take several pieces, in one commit. */
function judgeOneEffect(wish: Wish, effects: readonly Effect[]): readonly string[] {
  // The commit of the claim may have started the work already.
  const most = wish.repeatable || wish.name === "start" ? 1 : wish.tries.length;
  const commits = new Set(effects.map(({ version }) => version.operationId)).size;
  if (wish.name === "claimNext" && !wish.repeatable) return [];
  return commits > most ? [`it took effect ${commits} times, wanted ${wish.tries.length} times`] : [];
}

/** Calls whose repeat is told what the first try did, for as long as the record remembers. */
const remembered: readonly Wish["name"][] = [
  "checkpoint",
  "complete",
  "fail",
  "cancel",
  "timeout",
  "retry",
  "decide",
  "claim",
];

/** A repeat of what is committed must not be refused as if it had not happened. */
function judgeForgotten(wish: Wish, effects: readonly Effect[], history: History): readonly string[] {
  const [effect] = effects;
  if (effect === undefined || !remembered.includes(wish.name) || wish.arguments["requestId"] === undefined) return [];
  return wish.tries.flatMap((tried) => {
    const { heard } = tried;
    if (heard.kind !== "refused" || heard.retry || effect.version.at >= tried.startedAt) return [];
    if (wish.name === "claim" && heard.code === "WORKLOAD_CLAIM_INVALID") return [];
    return isRemembered(effect, tried, history)
      ? [`it is committed at ${effect.version.revision}, and its repeat was refused with ${heard.code}`]
      : [];
  });
}

function isRemembered(effect: Effect, tried: Try, history: History): boolean {
  const versions = history.versions.get(effect.version.record.workloadId) ?? [];
  const since = versions.filter(
    ({ revision, at }) => revision > effect.version.revision && at <= (tried.endedAt ?? Number.POSITIVE_INFINITY),
  );
  return since.length < OPERATION_RING - 1;
}

/** The part of an answer that a repeat must repeat; the whole answer when the call is not named, nothing when it tells of the present. */
const essences: Partial<Record<Wish["name"], (answer: unknown) => unknown>> = {
  admit: (answer) => (answer as Answers["admit"]).workload.workloadId,
  decide: (answer) => (answer as Answers["decide"]).decision,
  claim: (answer) => (answer as Answers["claim"]).claimId,
  claimNext: (answer) => (answer as Answers["claimNext"]).map(({ claimId }) => claimId),
  start: () => undefined,
  heartbeat: () => undefined,
  get: () => undefined,
};

function sameAnswer(wish: Wish, left: unknown, right: unknown): boolean {
  const essenceOf = essences[wish.name] ?? ((answer: unknown) => answer);
  return sameValue(essenceOf(left), essenceOf(right));
}

/** What an answer is held against. */
interface Claimed {
  readonly wish: Wish;
  readonly answer: unknown;
  readonly history: History;
  readonly versions: readonly Version[];
  /** The workload in the end. */
  readonly last: WorkloadRecord;
}

/** What an answer says is committed, call by call, and whether it is. */
const promises: Partial<Record<Wish["name"], readonly [string, (claimed: Claimed) => boolean]>> = {
  admit: ["this request", ({ wish, last }) => last.definitionRevision === wish.arguments["definitionRevision"]],
  claim: ["the claim", ({ answer, history }) => hasAttempt(history, answer as Answers["claim"])],
  checkpoint: [
    "the checkpoint",
    ({ wish, answer, history, last }) => {
      const state = last.checkpoints[(answer as Answers["checkpoint"]).sequence - 1]?.state;
      return state !== undefined && textOf(history, last.workloadId, state).includes(wish.mark);
    },
  ],
  complete: [
    "the result",
    ({ wish, history, last: { workloadId, result } }) =>
      result !== undefined && textOf(history, workloadId, result.output).includes(wish.mark),
  ],
  fail: [
    "the failure",
    ({ wish, last }) => last.attempts.some(({ error, status }) => status === "FAILED" && error === wish.mark),
  ],
  heartbeat: [
    "the renewal",
    ({ answer, versions }) => {
      const { claimId, expiresAt } = (answer as Answers["heartbeat"]).claim;
      return versions.some(
        ({ record: { currentClaim } }) => currentClaim?.claimId === claimId && currentClaim.expiresAt === expiresAt,
      );
    },
  ],
  start: [
    "the start",
    ({ wish, last }) =>
      last.attempts.some(({ claimId, startedAt }) => claimId === wish.arguments["claimId"] && startedAt !== undefined),
  ],
  confirmCancel: ["the end", ({ last }) => last.state === "CANCELLED"],
  cancel: [
    "a cancellation",
    ({ last }) => last.history.some(({ to }) => to === "CANCELLED" || to === "CANCELLATION_REQUESTED"),
  ],
  timeout: ["the operator's event", ({ wish, last }) => last.history.some(({ actor }) => actor === wish.mark)],
  retry: ["the operator's event", ({ wish, last }) => last.history.some(({ actor }) => actor === wish.mark)],
  decide: [
    "the decision",
    ({ answer, last }) => sameValue(last.approval?.decision, (answer as Answers["decide"]).decision),
  ],
};

/** What an answer promises and the history lacks. */
function findMissing(wish: Wish, answer: unknown, history: History): string | undefined {
  if (wish.name === "claimNext") {
    const lost = (answer as Answers["claimNext"]).find((claim) => !hasAttempt(history, claim));
    return lost === undefined ? undefined : `claim ${lost.claimId} was handed out and is not committed`;
  }
  const versions = history.versions.get(wish.workloadId ?? "") ?? [];
  const last = versions.at(-1)?.record;
  if (last === undefined) return "it was answered, and the workload does not exist";
  const [what, isCommitted] = promises[wish.name] ?? [];
  if (isCommitted?.({ wish, answer, history, versions, last }) !== false) return undefined;
  return `it was answered ${shown(answer)}, and ${what} is not committed`;
}

const hasAttempt = (history: History, claim: Answers["claim"]): boolean => {
  const last: WorkloadRecord | undefined = history.versions.get(claim.workloadId)?.at(-1)?.record;
  const attempt = last?.attempts[claim.fencingToken - 1];
  return attempt?.claimId === claim.claimId && attempt.workerId === claim.workerId;
};

/** Of all who admitted a key one was told that it created; a claim was handed to one wish alone; a refusal named a real difference. */
function judgeCreations(wishes: readonly Wish[]): readonly string[] {
  const faults: string[] = [];
  const creators = new Map<string, string>();
  const holders = new Map<string, string>();
  const once = (map: Map<string, string>, key: string, how: { readonly mark: string; readonly what: string }): void => {
    const known = map.get(key);
    if (known !== undefined && known !== how.mark) faults.push(`${how.what} ${key} by ${known} and by ${how.mark}`);
    map.set(key, how.mark);
  };
  for (const wish of wishes)
    for (const answer of answersOf(wish)) {
      if (wish.name === "admit") {
        const { created, workload } = answer as Answers["admit"];
        if (created) once(creators, workload.workloadId, { mark: wish.mark, what: "created twice:" });
      }
      const claims =
        wish.name === "claim"
          ? [answer as Answers["claim"]]
          : wish.name === "claimNext"
            ? (answer as Answers["claimNext"])
            : [];
      for (const { workloadId, fencingToken } of claims)
        once(holders, `${workloadId}:${fencingToken}`, { mark: wish.mark, what: "handed out twice:" });
    }
  return faults;
}
