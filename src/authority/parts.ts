import { monotonicMs, systemClock, systemTimers, type Clock, type Timers } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { MandateError, refuse } from "../core/errors.ts";
import type { Instant } from "../core/workload/fence.ts";
import { defaultRules, type WorkloadRules } from "../core/workload/rules.ts";
import { Projection } from "../store/projection/projection.ts";
import type { ReadyHooks } from "../store/projection/ready-queues.ts";
import type { CommitOutcome, Store } from "../store/store.ts";
import { SET_SIZE_MAX } from "../wire/limits.ts";
import { Access } from "./access.ts";
import { Admissions } from "./admissions.ts";
import type { CallName } from "./api.ts";
import { ClaimNext } from "./claim-next.ts";
import { Claimants } from "./claimants.ts";
import { Commands } from "./commands.ts";
import { Executor } from "./executor.ts";
import { OperationIds } from "./operation-ids.ts";
import { Passes } from "./passes.ts";
import { Placing } from "./placing.ts";
import { Pools } from "./pools.ts";
import { NODE_SILENT_MS, Pulse } from "./pulse.ts";
import { QueuePicker, queueHashOf } from "./queue-picker.ts";
import { Records } from "./records.ts";
import { Renderer } from "./render.ts";
import { RevocationCalls } from "./revocations.ts";
import { Sampling } from "./sampling.ts";
import { Serving } from "./serving.ts";
import { Settling } from "./settling.ts";
import { Slots } from "./slots.ts";
import { StoreTime } from "./store-time.ts";
import { WorkerChanges } from "./worker-changes.ts";
import { WorkerRecords } from "./worker-records.ts";
import { Workers } from "./workers.ts";

/** How long a call waits for a view that is newer than it, ms: longer than a follower takes to begin anew. */
const BARRIER_MS = 5000;

export interface AuthorityOptions {
  readonly store: Store;
  readonly nodeId: string;
  readonly log: Log;
  /** Unique to this process: at most 12 characters of [A-Za-z0-9_-]. */
  readonly nonce: string;
  /**
   * Given: the time is this clock's, nothing runs in the background and the node is always ready (test clusters).
   * Absent: the time is the store's, passes run, and the node serves only while its view is fresh.
   */
  readonly clock?: Clock;
  readonly rules?: Partial<WorkloadRules>;
  readonly random?: () => number;
  readonly monotonic?: () => number;
  readonly timers?: Timers;
  readonly wall?: Clock;
  readonly passIntervalMs?: number;
  /** How long work waits for each step of priority that it gains, ms; absent: none. The same at every node. */
  readonly agingMs?: number;
  readonly clockSkewMaxMs?: number;
  readonly commitDeadlineMs?: number;
  /** How the executor waits between rounds of a contested decision. */
  readonly pause?: (ms: number) => Promise<void>;
  readonly onCommit?: (action: string, outcome: CommitOutcome["kind"]) => void;
  readonly onCall?: (call: CallName, code: string | undefined, tookMs: number) => void;
}

/** What a node is made of. */
export interface Parts {
  readonly projection: Projection;
  readonly records: Records;
  readonly executor: Executor;
  readonly renderer: Renderer;
  readonly commands: Commands;
  readonly admissions: Admissions;
  readonly claimNext: ClaimNext;
  readonly picker: QueuePicker;
  readonly passes: Passes;
  readonly workers: Workers;
  readonly pools: Pools;
  readonly placing: Placing;
  readonly revocations: RevocationCalls;
  readonly access: Access;
  readonly sampling: Sampling;
  readonly settling: Settling;
  readonly pulse: Pulse;
  readonly serving: Serving;
  /** The time decisions are taken at, ms. */
  readonly now: () => number;
}

/** Other nodes that are alive, with the age of their word, ms; given a queue's hash, those that say they have workers waiting in it. */
const otherNodes = (
  projection: Projection,
  node: { readonly nodeId: string; readonly now: number },
  queueHash?: number,
): readonly { readonly nodeId: string; readonly ageMs: number }[] =>
  [...projection.nodes().values()]
    .filter(
      ({ nodeId, at, waiting }) =>
        nodeId !== node.nodeId &&
        node.now - at <= NODE_SILENT_MS &&
        (queueHash === undefined || waiting.includes(queueHash)),
    )
    .map(({ nodeId, at }) => ({ nodeId, ageMs: node.now - at }));

/** Puts a node together; nothing runs yet. `assembly` tells those of one node apart, so that no operation id comes twice. */
export function assembleParts(
  options: AuthorityOptions,
  { assembly, ...hooks }: ReadyHooks & { readonly assembly: number },
): Parts {
  const { store, log, clock, nodeId } = options;
  const { monotonic = monotonicMs, wall = systemClock, timers = systemTimers, commitDeadlineMs = 10_000 } = options;
  const nonce = `${options.nonce}${assembly.toString(36)}`;
  const rules = { ...defaultRules, ...options.rules };
  const clockSkewMaxMs = options.clockSkewMaxMs ?? 2000;
  const storeTime = new StoreTime({ monotonic, wall, skewMaxMs: clockSkewMaxMs });
  const now = clock === undefined ? () => storeTime.now() : () => clock.now();
  const projection: Projection = new Projection({
    store,
    log,
    now,
    timers,
    ...hooks,
    agingMs: options.agingMs,
    onRevocation: () => access.revoked(),
    onRegistry: (key) => claimNext.registryChanged(key),
    onNode: (node) => {
      // How old the view is shows last before it becomes new: a break that nobody asked about is one all the same.
      if (clock === undefined && node.nodeId === nodeId) serving.readiness();
      pulse.observe(node);
    },
  });
  const pulse: Pulse = new Pulse({
    nodeId,
    nonce,
    store,
    projection,
    monotonic,
    wall: () => wall.now(),
    log,
    time: storeTime,
    waiting: () => [...claimNext.waitingQueues()].slice(0, SET_SIZE_MAX).map(queueHashOf),
    deadlineMs: Math.min(commitDeadlineMs, 2000),
  });
  const serving = new Serving({
    reachable: () => store.reachable(),
    viewObstacles: () => projection.obstacles(),
    viewAgeMs: () => pulse.viewAgeMs(),
    time: storeTime,
    monotonic,
    clockSkewMaxMs,
    now,
    onTurn: ({ ready, reasons }) => log.info({ ready, reasons }, ready ? "the node is ready" : "the node is not ready"),
  });
  const instant = (): Instant => {
    const at = now();
    const { revocations } = projection;
    return clock === undefined
      ? { now: at, revocations, servingSince: serving.since() ?? at }
      : { now: at, revocations };
  };
  const operationIds = new OperationIds(nonce);
  const records = new Records(store, projection);
  const access = new Access({ records, projection, now, skewMs: clockSkewMaxMs, timers });
  const slots = new Slots(projection, nodeId);
  const workerRecords = new WorkerRecords({ store, projection, slots });
  const claimants = new Claimants({ records: workerRecords, slots });
  const executor = new Executor({
    nodeId,
    records,
    projection,
    slots,
    operationIds,
    instant,
    random: options.random ?? Math.random,
    log,
    pause: options.pause ?? ((ms) => new Promise((resolve) => timers.after(ms, resolve))),
    commitDeadlineMs,
    onCommit: (action, outcome) => options.onCommit?.(action, outcome),
  });
  const picker = new QueuePicker({
    nodeId,
    ready: projection.index.ready,
    waitingNodes: (queueHash) => otherNodes(projection, { nodeId, now: now() }, queueHash),
    livingNodes: () => otherNodes(projection, { nodeId, now: now() }).map((other) => other.nodeId),
    monotonic,
    spread: clock === undefined,
  });
  const changes = new WorkerChanges({
    nodeId,
    records: workerRecords,
    projection,
    slots,
    operationIds,
    instant,
    commitDeadlineMs,
  });
  /** A held view is old on purpose; any other that can't be made newer than the call must not pass for what there is. */
  const viewIsNew = async (): Promise<void> => {
    if ((await pulse.barriers(BARRIER_MS)) || projection.isHeld) return;
    throw MandateError.of(refuse("AUTHORITY_NOT_READY", "this node's view could not be made newer than the call"));
  };
  const placing = new Placing({ records, workerRecords, slots, instant, viewIsNew });
  const claimNext: ClaimNext = new ClaimNext({
    nodeId,
    executor,
    records,
    projection,
    picker,
    claimants,
    slots,
    operationIds,
    instant,
    commitDeadlineMs,
    monotonic,
    timers,
    log,
    strict: clock !== undefined,
    viewSince: (shard, moment, timeoutMs) => pulse.viewSince(shard, moment, timeoutMs),
  });
  return {
    projection,
    records,
    executor,
    renderer: new Renderer((shard) => records.shard(shard)),
    commands: new Commands(rules, placing),
    admissions: new Admissions({ executor, records, store, rules, now }),
    claimNext,
    picker,
    passes: new Passes({ projection, executor, instant, log }),
    workers: new Workers({ records, workerRecords, changes, executor, projection, instant, log, viewIsNew }),
    revocations: new RevocationCalls({ nodeId, store, projection, operationIds, now, commitDeadlineMs }),
    access,
    pools: new Pools({ workerRecords, changes, projection, now, viewIsNew }),
    placing,
    sampling: new Sampling({ projection, records, random: options.random ?? Math.random, log }),
    settling: new Settling(projection),
    pulse,
    serving,
    now,
  };
}
