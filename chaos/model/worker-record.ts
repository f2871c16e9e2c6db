import type { WorkerLifecycle, WorkerRecord } from "../../src/core/worker/record.ts";
import { workerIdOf } from "./identities.ts";
import { differingMembers, same } from "./same.ts";

/**
 * The life of a worker, written down a second time from contract 2.2: one commit of its record is explained as one
 * command, by the action that the store says it was; the rules say what that may have changed.
 */

/** What else is so at the moment of a commit of a worker. */
export interface WorkerWorld {
  /** How many slots its claims hold. */
  readonly active: number;
  /** What was done, as the stored message says. */
  readonly action: string;
}

export interface WorkerStep {
  readonly breaches: readonly string[];
  /** Given up for its silence: not before this instant, epoch ms. */
  readonly dueAt?: number;
}

const table: { readonly [From in WorkerLifecycle]: string } = {
  REGISTERED: "READY",
  READY: "BUSY DRAINING OFFLINE",
  BUSY: "READY DRAINING OFFLINE",
  DRAINING: "OFFLINE",
  OFFLINE: "RECOVERING",
  RECOVERING: "READY OFFLINE",
};

/** The lifecycle that slots and record make together: READY with every slot taken is BUSY, DRAINING without a claim OFFLINE. */
export function shownLifecycleOf(record: WorkerRecord, active: number): WorkerLifecycle {
  if (record.lifecycle === "READY") return active >= record.concurrency ? "BUSY" : "READY";
  return record.lifecycle === "DRAINING" && active === 0 ? "OFFLINE" : record.lifecycle;
}

/** When a worker is given up unless it is heard before, epoch ms. */
export const silentAtOf = ({ lastSeen, heartbeatTimeoutMs }: WorkerRecord): number => lastSeen + heartbeatTimeoutMs;

const identity = ["contractVersion", "workerId", "tenantId", "applicationId", "name", "registeredAt"] as const;
/** What a registration says of a worker. */
const described = [
  "runtime",
  "version",
  "declaredCapabilities",
  "grantedCapabilities",
  "workloadKinds",
  "resourceProfile",
  "labels",
  "concurrency",
  "heartbeatIntervalMs",
  "heartbeatTimeoutMs",
  "capabilityVersion",
  "grantId",
  "grants",
] as const;

/** The fields that each action may change. */
const changes: { readonly [action: string]: readonly string[] } = {
  registerWorker: [...described, "incarnation", "superseded", "lifecycle", "health", "lastSeen"],
  heartbeatWorker: ["lastSeen", "health", "lifecycle"],
  reconcileWorker: ["lastSeen", "health", "lifecycle"],
  drainWorker: ["lifecycle"],
  recoverWorker: ["lifecycle"],
  removeWorker: ["lifecycle"],
  detectFailures: ["lifecycle", "health"],
};

class Examination {
  readonly before: WorkerRecord;
  readonly after: WorkerRecord;
  readonly active: number;
  readonly breaches: string[] = [];

  constructor(before: WorkerRecord, after: WorkerRecord, active: number) {
    this.before = before;
    this.after = after;
    this.active = active;
  }

  require(condition: boolean, message: string): void {
    if (!condition) this.breaches.push(message);
  }

  /** The lifecycle it comes from as the table names it. */
  get from(): WorkerLifecycle {
    return shownLifecycleOf(this.before, this.active);
  }

  requireMove(to: WorkerLifecycle): void {
    const lifecycle = this.after.lifecycle;
    this.require(lifecycle === to, `it is ${lifecycle}, not ${to}`);
    this.require((table[this.from] ?? "").split(" ").includes(to), `the table has no move from ${this.from} to ${to}`);
  }
}

/** One that is heard is READY; one that drains goes on draining, and may be OFFLINE once its last claim has ended. */
function examineHeard(examination: Examination): void {
  const { before, after, active } = examination;
  if (before.lifecycle !== "DRAINING") {
    examination.require(after.lifecycle === "READY", `heard, it is ${after.lifecycle}`);
    return;
  }
  const right = after.lifecycle === "DRAINING" || (after.lifecycle === "OFFLINE" && active === 0);
  examination.require(right, `draining with ${active} claims, it became ${after.lifecycle}`);
}

function examineSuccessor(examination: Examination): void {
  const { before, after } = examination;
  const { id, number } = after.incarnation;
  examination.require(
    number === before.incarnation.number + 1,
    `incarnation ${number} follows ${before.incarnation.number}`,
  );
  examination.require(id !== before.incarnation.id && !before.superseded.includes(id), `incarnation ${id} came back`);
  const known = [...before.superseded, before.incarnation.id].slice(-32);
  examination.require(same(after.superseded, known), `what it superseded is ${after.superseded.join(", ")}`);
  const { lifecycle, health } = after;
  examination.require(lifecycle === "REGISTERED" && health === "UNKNOWN", `it begins ${lifecycle} and ${health}`);
}

function examineRegister(examination: Examination): void {
  const { before, after } = examination;
  if (!same(before.incarnation, after.incarnation)) examineSuccessor(examination);
  else {
    const kept = before.lifecycle === after.lifecycle && before.health === after.health;
    examination.require(kept, "a registration of the same process changed its lifecycle or its health");
    examination.require(same(before.superseded, after.superseded), "what it superseded changed");
  }
}

function examineGivenUp(examination: Examination): number | undefined {
  const { before, after, active } = examination;
  examination.require(before.lifecycle !== "OFFLINE", "it was OFFLINE before");
  examination.require(after.lifecycle === "OFFLINE", `given up, it is ${after.lifecycle}`);
  const drained = before.lifecycle === "DRAINING" && active === 0 && before.health === after.health;
  if (drained) return undefined;
  examination.require(after.health === "UNHEALTHY", `given up, its health is ${after.health}`);
  return silentAtOf(before);
}

function examineAction(examination: Examination, action: string): number | undefined {
  const { before, after } = examination;
  switch (action) {
    case "registerWorker":
      examineRegister(examination);
      return undefined;
    case "heartbeatWorker":
      examination.require(before.lifecycle !== "OFFLINE", "one that is OFFLINE was heard without a reconciliation");
      examineHeard(examination);
      return undefined;
    case "reconcileWorker":
      examination.require(after.health === "HEALTHY", `reconciled, its health is ${after.health}`);
      examineHeard(examination);
      return undefined;
    case "drainWorker":
      examination.requireMove("DRAINING");
      return undefined;
    case "recoverWorker":
      examination.requireMove("RECOVERING");
      return undefined;
    case "removeWorker":
      examination.requireMove("DRAINING");
      return undefined;
    case "detectFailures":
      return examineGivenUp(examination);
    default:
      examination.require(false, `no command of the rules does ${action} to a worker`);
      return undefined;
  }
}

const isSortedSet = (items: readonly string[]): boolean => same(items, [...new Set(items)].sort());

/** What holds for every version by itself. */
function findUnsound(record: WorkerRecord): readonly string[] {
  const { declaredCapabilities, grantedCapabilities, workloadKinds, concurrency } = record;
  const undeclared = grantedCapabilities.filter((name) => !declaredCapabilities.includes(name));
  const sets = [declaredCapabilities, grantedCapabilities, workloadKinds].every(isSortedSet);
  return [
    ...(record.workerId === workerIdOf(record) ? [] : ["its id is not that of its name"]),
    ...(undeclared.length === 0 ? [] : [`${undeclared.join(", ")} granted and not declared`]),
    ...(sets ? [] : ["a set has no order"]),
    ...(Number.isInteger(concurrency) && concurrency >= 1 ? [] : [`its concurrency is ${concurrency}`]),
  ];
}

function findWrongBirth(record: WorkerRecord, action: string): readonly string[] {
  const { incarnation, superseded, lifecycle, health, lastSeen, registeredAt } = record;
  const begun = lifecycle === "REGISTERED" && health === "UNKNOWN" && lastSeen === registeredAt;
  return [
    ...(action === "registerWorker" ? [] : [`${action} made a worker`]),
    ...(begun ? [] : [`it begins ${lifecycle} and ${health}`]),
    ...(incarnation.number === 1 && superseded.length === 0
      ? []
      : [`it begins with incarnation ${incarnation.number}`]),
  ];
}

/** Explains one commit of a worker's record: from nothing or from the version before, to the next or to its removal. */
export function explainWorker(
  before: WorkerRecord | undefined,
  after: WorkerRecord | undefined,
  world: WorkerWorld,
): WorkerStep {
  const { active, action } = world;
  if (after === undefined) {
    const breaches = before === undefined ? ["removed twice"] : [];
    if (action !== "removeWorker") breaches.push(`${action} removed it`);
    if (active > 0) breaches.push(`it was removed with ${active} claims`);
    return { breaches };
  }
  const unsound = findUnsound(after);
  if (before === undefined) return { breaches: [...unsound, ...findWrongBirth(after, action)] };
  const examination = new Examination(before, after, active);
  const allowed = changes[action] ?? [];
  for (const name of differingMembers(before, after))
    examination.require(allowed.includes(name), `${action} changed ${name}`);
  for (const name of identity) examination.require(same(before[name], after[name]), `${name} changed`);
  examination.require(after.lastSeen >= before.lastSeen, "lastSeen ran backwards");
  const dueAt = examineAction(examination, action);
  return { breaches: [...unsound, ...examination.breaches], ...(dueAt === undefined ? {} : { dueAt }) };
}
