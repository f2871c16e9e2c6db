import { errorRegistry, isErrorCode } from "../../src/core/errors.ts";
import type { Bearer, CallLine } from "../history.ts";
import { hashOf, workerIdOf, workloadIdOf, type Scope } from "../model/identities.ts";
import { fieldsOf, itemsOf, textOf, type Fields } from "./fields.ts";
import { workloadFingerprint } from "./fingerprint.ts";
import { requestDigest } from "./request-digest.ts";

/** A place in the store's order. */
export interface Position {
  readonly shard: number;
  readonly revision: number;
}

/**
 * One call, or one item of a batch, reduced to what the validators compare: payloads are hashes (`honest`: an answered one
 * is what its hash says), and an answered workload is its fingerprint. `kind` is `refused` only for a definite refusal: one that may have happened after all is `unknown`.
 */
export interface CallFact {
  readonly id: number;
  readonly caller: string;
  readonly call: string;
  readonly requestId?: string;
  readonly workloadId?: string;
  /** The grant that it carried; absent in open mode. */
  readonly bearer?: Bearer;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly kind: "acknowledged" | "refused" | "unknown";
  readonly code?: string;
  readonly details?: Fields;
  readonly position?: Position;
  readonly args: Fields;
  /** Absent unless acknowledged. */
  readonly answer?: unknown;
}

const callsByVerb: { readonly [verb: string]: string } = {
  "worker.register": "registerWorker",
  "worker.heartbeat": "heartbeatWorker",
  "worker.drain": "drainWorker",
  "worker.reconcile": "reconcileWorker",
  "work.next": "claimNext",
  "work.claim": "claim",
  "work.start": "start",
  "work.heartbeat": "heartbeat",
  "work.context": "executionContext",
  "work.checkpoint": "checkpoint",
  "work.complete": "complete",
  "work.fail": "fail",
  "work.confirm-cancel": "confirmCancel",
};

/** A revision as an answer gives it: with its shard in front when there are several. */
export function parsePosition(text: string | undefined): Position | undefined {
  const [, shard = "0", revision] = /^(?:(\d+)-)?(\d+)$/.exec(text ?? "") ?? [];
  return revision === undefined ? undefined : { shard: Number(shard), revision: Number(revision) };
}

/** A workload as an answer shows it: which one, and the fingerprint of the version that it is. */
function reduceWorkload(value: unknown): Fields {
  const workload = fieldsOf(value);
  const { workloadId, state, createdAt, inputHash } = workload;
  return {
    workloadId,
    state,
    createdAt,
    inputHash,
    events: itemsOf(workload["history"]).length,
    digest: requestDigest(workload),
    fingerprint: workloadFingerprint(workload),
    honest: hashOf(workload["input"] ?? null) === inputHash,
  };
}

function without(fields: Fields, ...names: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

/** Who called, where the surface takes the caller for the actor: `kind:id`. */
const subjectOf = (caller: string): Fields => {
  const [, kind, id] = /^([a-z]+):(.*)$/.exec(caller) ?? [];
  return { kind, id: id ?? caller };
};

/** The id that a worker of this name has. */
function workerIdIn({ tenantId, applicationId, name }: Fields): string | undefined {
  if (typeof tenantId !== "string" || typeof applicationId !== "string" || typeof name !== "string") return undefined;
  return workerIdOf({ tenantId, applicationId, name });
}

function reduceArguments(call: string, value: unknown, caller: string): Fields {
  const args = fieldsOf(value);
  switch (call) {
    case "cancel":
    case "timeout":
    case "retry":
      return { ...args, actor: args["actor"] ?? subjectOf(caller) };
    case "decide":
      return { ...args, decider: args["decider"] ?? subjectOf(caller) };
    case "admit":
      return {
        tenantId: args["tenantId"],
        applicationId: args["applicationId"],
        requestedBy: args["requestedBy"],
        idempotencyKey: args["idempotencyKey"],
        gated: args["approval"] !== undefined,
        digest: requestDigest(args),
      };
    case "registerWorker":
      return { ...args, workerId: workerIdIn(args) };
    case "checkpoint":
      return { ...without(args, "state"), stateHash: hashOf(args["state"] ?? null) };
    case "complete":
      return { ...without(args, "output"), outputHash: hashOf(args["output"] ?? null) };
    default:
      return args;
  }
}

function reduceAnswer(call: string, answer: unknown): unknown {
  const fields = fieldsOf(answer);
  switch (call) {
    case "admit":
      return { created: fields["created"], workload: reduceWorkload(fields["workload"]) };
    case "get":
      return reduceWorkload(answer);
    case "checkpoint":
      return { ...without(fields, "state"), honest: hashOf(fields["state"] ?? null) === fields["stateHash"] };
    case "complete":
      return { ...without(fields, "output"), honest: hashOf(fields["output"] ?? null) === fields["outputHash"] };
    case "executionContext":
    case "list":
    case "explain":
    case "result":
    case "listWorkers":
    case "listApprovals":
    case "events":
    case "metrics":
      return undefined;
    default:
      return answer;
  }
}

function workloadOf(call: string, args: Fields, answer: unknown): string | undefined {
  if (call !== "admit") return textOf(args["workloadId"]);
  const answered = textOf(fieldsOf(fieldsOf(answer)["workload"])["workloadId"]);
  if (answered !== undefined) return answered;
  const { tenantId, applicationId, idempotencyKey } = args;
  const { kind, id } = fieldsOf(args["requestedBy"]);
  const parts = [tenantId, applicationId, idempotencyKey, kind, id];
  return parts.every((part) => typeof part === "string") ? workloadIdOf(args as Fields & Scope) : undefined;
}

interface Ended {
  readonly kind: CallFact["kind"];
  readonly answer?: unknown;
  readonly code?: string;
  readonly details?: unknown;
}

function endOf({ outcome }: CallLine): Ended {
  switch (outcome.kind) {
    case "acknowledged":
      return { kind: "acknowledged", answer: outcome.answer };
    case "refused":
      return { kind: outcome.definite ? "refused" : "unknown", code: outcome.code, details: outcome.details };
    case "unknown":
      return { kind: "unknown" };
  }
}

function factOf(line: CallLine, call: string, args: unknown, end: Ended): CallFact {
  const reduced = reduceArguments(call, args, line.caller);
  const answer = end.kind === "acknowledged" ? reduceAnswer(call, end.answer) : undefined;
  const workloadId = workloadOf(call, reduced, answer);
  const requestId = textOf(fieldsOf(args)["requestId"]) ?? line.requestId;
  const revision = line.outcome.kind === "acknowledged" ? line.outcome.revision : undefined;
  const position = parsePosition(revision);
  return {
    id: line.id,
    caller: line.caller,
    call,
    startedAt: line.startedAt,
    endedAt: line.endedAt,
    kind: end.kind,
    args: reduced,
    ...(requestId === undefined ? {} : { requestId }),
    ...(workloadId === undefined ? {} : { workloadId }),
    ...(line.bearer === undefined ? {} : { bearer: line.bearer }),
    ...(end.code === undefined ? {} : { code: end.code }),
    ...(end.details === undefined ? {} : { details: fieldsOf(end.details) }),
    ...(position === undefined ? {} : { position }),
    ...(answer === undefined ? {} : { answer }),
  };
}

/** What became of one item of a batch: the batch's own fate when it has no answer. */
function endOfItem(whole: Ended, index: number): Ended {
  if (whole.kind !== "acknowledged") return whole;
  const item = fieldsOf(itemsOf(whole.answer)[index]);
  if (item["ok"] === true) return { kind: "acknowledged", answer: item };
  const { code, details } = fieldsOf(item["error"]);
  if (typeof code !== "string") return { kind: "unknown" };
  const definite = isErrorCode(code) && errorRegistry[code].definite;
  return { kind: definite ? "refused" : "unknown", code, details };
}

/** The calls that a line stands for: one, or as many as its batch has items. */
export function callFactsOf(line: CallLine): readonly CallFact[] {
  const call = callsByVerb[line.call] ?? line.call;
  const end = endOf(line);
  const batch =
    call === "admitMany"
      ? itemsOf(line.arguments)
      : call === "heartbeatMany"
        ? itemsOf(fieldsOf(line.arguments)["claims"] ?? line.arguments)
        : undefined;
  if (batch === undefined) return [factOf(line, call, line.arguments, end)];
  const single = call === "admitMany" ? "admit" : "heartbeat";
  return batch.map((item, index) => {
    const { position: _ofAll, ...fact } = factOf(line, single, item, endOfItem(end, index));
    return fact;
  });
}
