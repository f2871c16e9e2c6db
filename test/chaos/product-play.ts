import { seededRandom, type Random } from "../../src/base/random.ts";
import { silentLog } from "../../src/base/log.ts";
import { Authority } from "../../src/authority/authority.ts";
import type { CallName } from "../../src/authority/api.ts";
import { MandateError } from "../../src/core/errors.ts";
import type { Claim, Workload } from "../../src/core/workload/record.ts";
import type { CallLine, EntryLine, HistoryLine, Outcome } from "../../chaos/history.ts";
import { roughFaults } from "../../src/store/simulated/faults.ts";
import { SimulatedLog } from "../../src/store/simulated/simulated-log.ts";
import { TestClock } from "../../src/testing.ts";
import { poolIds, RegistryRequests } from "./registry-requests.ts";
import { decodeEntry } from "../../chaos/decode-entry.ts";
import { renderItem } from "../../src/wire/problem.ts";

/** The product itself, small: three authorities over the simulated store, random calls, and the history of it all. */

const START = 1_800_000_000_000;
const tenantId = "acme";
const applicationId = "invoices";
const requester = { kind: "service", id: "billing" } as const;
const deciders = [
  { kind: "human", id: "ada" },
  { kind: "human", id: "grace" },
  { kind: "service", id: "billing" },
] as const;

interface Request {
  readonly call: CallName;
  readonly args: { readonly [name: string]: unknown };
}

class Play {
  readonly clock = new TestClock(START);
  readonly log = new SimulatedLog({ clock: this.clock, history: true, seed: 1 });
  readonly nodes: Authority[] = [];
  readonly lines: HistoryLine[] = [];
  readonly #random: Random;
  readonly #asked: Request[] = [];
  readonly #claims: Claim[] = [];
  readonly #workloads: Workload[] = [];
  readonly #registry: RegistryRequests | undefined;
  #calls = 0;
  #ticks = 0;

  constructor(seed: number, registry: boolean) {
    this.#random = seededRandom(seed);
    if (registry) this.#registry = new RegistryRequests(this);
  }

  draw(below: number): number {
    return Math.floor(this.#random() * below);
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.draw(items.length)] as Item;
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  /** The run's clock: the store's, and a little later with every look. */
  now(): number {
    this.#ticks += 1;
    return this.clock.now() + this.#ticks / 2048;
  }

  async open(): Promise<void> {
    for (const nodeId of ["n1", "n2", "n3"]) {
      const store = this.log.client({ faults: { ...roughFaults, followDelayMs: [0, 0], followLost: 0 } });
      const node = new Authority({ store, nodeId, nonce: nodeId, clock: this.clock, log: silentLog });
      node.open();
      await node.caughtUp(60_000);
      this.nodes.push(node);
    }
  }

  async call({ call, args }: Request): Promise<void> {
    const node = this.pick(this.nodes);
    const startedAt = this.now();
    const id = ++this.#calls;
    const value = call === "admitMany" ? args["requests"] : args;
    const outcome = await node.call(call, value).then(
      ({ answer, position }): Outcome => {
        const shown = call === "admitMany" ? (answer as readonly { ok: true }[]).map(renderItem) : answer;
        this.#note(call, answer);
        return {
          kind: "acknowledged",
          answer: shown,
          ...(position === undefined ? {} : { revision: String(position.revision) }),
        };
      },
      (error: unknown): Outcome => {
        if (!(error instanceof MandateError)) throw error;
        const { code, definite, details } = error;
        return { kind: "refused", code, definite, ...(details === undefined ? {} : { details }) };
      },
    );
    const { requestId } = args;
    const line: CallLine = {
      line: "call",
      id,
      caller: typeof args["workerId"] === "string" ? args["workerId"] : "play",
      surface: "http",
      call,
      arguments: JSON.parse(JSON.stringify(value)) as unknown,
      node: node.nodeId,
      startedAt,
      endedAt: this.now(),
      outcome: JSON.parse(JSON.stringify(outcome)) as Outcome,
      ...(typeof requestId === "string" ? { requestId } : {}),
    };
    this.lines.push(line);
  }

  #note(call: CallName, answer: unknown): void {
    if (call === "admit") this.#workloads.push((answer as { workload: Workload }).workload);
    if (call === "claim") this.#claims.push(answer as Claim);
    if (call === "claimNext") this.#claims.push(...(answer as readonly Claim[]));
  }

  /** Something to ask for: often about what was claimed last, sometimes the very same as before. */
  request(): Request {
    if (this.#asked.length > 0 && this.chance(0.12)) return this.pick(this.#asked.slice(-12));
    const drawn = this.#draw();
    const args = this.chance(0.7) ? { ...drawn.args, requestId: `r${this.#asked.length}` } : drawn.args;
    const request = drawn.call === "get" || drawn.call === "admitMany" ? drawn : { ...drawn, args };
    this.#asked.push(request);
    return request;
  }

  /** Now and then a worker of the registry that is ready for work is asked for through all nodes at once. */
  async prepareRush(): Promise<
    { readonly before: readonly Request[]; readonly calls: readonly Request[]; readonly after: Request } | undefined
  > {
    if (this.#registry === undefined || !this.chance(0.15)) return undefined;
    const { ready, ...rush } = this.#registry.rush();
    const admissions = [this.admission(), this.admission(), this.admission(), this.admission()];
    for (const args of admissions) await this.call({ call: "admit", args });
    for (const request of ready) await this.call(request);
    return rush;
  }

  /** A worker that is heard names the claims that it was handed last, whether it still holds them or not. */
  withClaims({ call, args }: Request): Request {
    if (call !== "heartbeatWorker") return { call, args };
    const own = this.#claims.filter(({ workerId }) => workerId === args["workerId"]).slice(-3);
    return { call, args: { ...args, runningClaims: own.map(({ claimId }) => claimId) } };
  }

  #draw(): Request {
    const claim = this.#claims.at(-1 - this.draw(6));
    const unique = `u${this.#asked.length}`;
    if (this.#registry !== undefined && this.chance(0.4)) return this.withClaims(this.#registry.draw());
    if (this.#registry !== undefined && this.chance(0.3)) return this.#registry.next();
    const kind = this.draw(23);
    if (this.#workloads.length === 0 || kind < 3) return { call: "admit", args: this.admission() };
    if (kind === 3) return { call: "admitMany", args: { requests: [this.admission(), this.admission()] } };
    const { workloadId } = this.#workloads.at(-1 - this.draw(8)) ?? this.pick(this.#workloads);
    const workerId = this.pick(["w1", "w2", "w3"]);
    const capabilities = ["cpu", "gpu"].slice(0, 1 + this.draw(2));
    const leaseMs = this.pick([200, 3000, 60_000]);
    const who = this.#registry !== undefined && this.chance(0.8) ? this.#registry.claimant() : { workerId };
    const taking = { capabilities, leaseMs, start: this.chance(0.6), ...who };
    if (kind === 4) return { call: "get", args: { workloadId } };
    if (kind < 7) return { call: "claim", args: { workloadId, ...taking } };
    if (kind < 10) return { call: "claimNext", args: { tenantId, applicationId, max: 1 + this.draw(2), ...taking } };
    if (kind === 10 || kind >= 20) {
      const gated = this.#workloads.findLast(({ approval }) => approval !== undefined && this.chance(0.5));
      const { workloadId, inputHash } = gated ?? this.pick(this.#workloads);
      const outcome = this.pick(["approved", "approved", "rejected"] as const);
      return {
        call: "decide",
        args: { workloadId, decider: this.pick(deciders), outcome, reason: unique, grantId: "g2", inputHash },
      };
    }
    if (kind === 11) return { call: "cancel", args: { workloadId, actor: `op-${unique}`, reason: unique } };
    if (kind === 12) return { call: "timeout", args: { workloadId, actor: `op-${unique}` } };
    if (kind === 13) return { call: "retry", args: { workloadId, actor: `op-${unique}`, reason: unique } };
    if (claim === undefined) return { call: "get", args: { workloadId } };
    return this.#workerCall(claim, unique);
  }

  #workerCall({ workloadId, claimId, workerId, fencingToken }: Claim, unique: string): Request {
    const fence = { workloadId, claimId, workerId, fencingToken };
    const call = this.pick(["start", "heartbeat", "checkpoint", "complete", "fail", "confirmCancel"] as const);
    switch (call) {
      case "heartbeat":
        return { call, args: { ...fence, extendMs: this.pick([300, 3000, 60_000]) } };
      case "checkpoint":
        return { call, args: { ...fence, state: { step: unique, text: "x".repeat(this.pick([1, 5000])) } } };
      case "complete":
        return {
          call,
          args: { ...fence, output: { unique }, artifacts: [], ...(this.chance(0.5) ? { resultId: unique } : {}) },
        };
      case "fail": {
        const effect = this.pick([{}, { effect: "none" }, { effect: "unknown" }]);
        return { call, args: { ...fence, kind: this.pick(["transient_connection", "bug"]), error: unique, ...effect } };
      }
      case "start":
      case "confirmCancel":
        return { call, args: fence };
    }
  }

  admission(): Request["args"] {
    const number = this.draw(60);
    const variant = this.chance(0.1) ? "other" : "same";
    const gated = number % 2 === 0;
    return {
      tenantId,
      applicationId,
      environment: "test",
      definitionId: `render-${variant}`,
      definitionRevision: "1",
      trigger: "play",
      input: { number, text: "y".repeat(number % 5 === 0 ? 6000 : 5) },
      requestedBy: requester,
      authorization: { grantId: "g1", issuer: "issuer", subject: requester, tenantId, applicationId },
      // Who plays with workers of the registry needs more and more work for them.
      idempotencyKey: this.#registry === undefined ? `key-${number}` : `key-${number}-${this.#asked.length >> 5}`,
      capabilities: number % 3 === 0 ? ["gpu", "cpu"] : ["cpu"],
      ...(this.#registry !== undefined && number % 4 === 1 ? { placement: { poolId: poolIds[number % 2] } } : {}),
      retryPolicy: {
        maxAttempts: 1 + (number % 3),
        initialDelayMs: (number % 5) * 100,
        backoff: number % 2 === 0 ? "fixed" : "exponential",
        ...(number % 7 === 0 ? { jitter: 0.5 } : {}),
      },
      timeouts: {
        ...(number % 6 === 0 ? { executionMs: 4000 } : {}),
        ...(number % 5 === 0 ? { queueMs: 9000 } : {}),
        ...(number % 11 === 0 ? { overallMs: 20_000, claimMs: 900, heartbeatMs: 1500 } : {}),
        ...(gated ? { approvalMs: 15_000 } : {}),
      },
      ...(number % 9 === 0 ? { notBefore: START + number * 300 } : {}),
      ...(gated
        ? { approval: { approverKinds: ["human"], ...(number % 8 === 0 ? { requiredApprovals: 2 } : {}) } }
        : {}),
    };
  }

  async passes(): Promise<void> {
    for (const node of this.nodes) {
      await node.recoverExpired();
      await node.enforceDeadlines();
      await node.detectFailures();
    }
  }

  entries(): readonly EntryLine[] {
    return this.log.history(0).flatMap(({ entries }) =>
      entries.map((entry): EntryLine => {
        const { key, revision, at, operations, provenance } = entry;
        return {
          line: "entry",
          shard: 0,
          revision,
          key,
          at,
          operations,
          provenance,
          ...(JSON.parse(JSON.stringify(decodeEntry(key, entry.value))) as ReturnType<typeof decodeEntry>),
        };
      }),
    );
  }

  async close(): Promise<void> {
    for (const node of this.nodes) await node.close();
  }
}

/** Plays `rounds` rounds of racing calls and gives the history of it; with workers of the registry or without. */
export async function playProduct(
  seed: number,
  rounds: number,
  options: { readonly registry?: boolean } = {},
): Promise<readonly HistoryLine[]> {
  const play = new Play(seed, options.registry ?? false);
  await play.open();
  try {
    for (let round = 0; round < rounds; round++) {
      const rush = await play.prepareRush();
      const held = play.chance(0.3) ? play.pick(play.nodes) : undefined;
      held?.holdView();
      for (const request of rush?.before ?? []) await play.call(request);
      const requests = rush?.calls ?? Array.from({ length: 1 + play.draw(4) }, () => play.request());
      await Promise.all(requests.map((request) => play.call(request)));
      if (rush !== undefined) await play.call(play.withClaims(rush.after));
      held?.releaseView();
      play.clock.advance(play.pick([0, 1, 20, 150, 700, 2500]));
      if (play.chance(0.3)) await play.passes();
    }
    const healedAt = play.clock.now();
    for (let round = 0; round < 4; round++) {
      play.clock.advance(5000);
      await play.passes();
    }
    return [
      {
        line: "run",
        version: "0",
        seed,
        scenario: "play",
        minutes: 0,
        startedAt: START - 1_000_000,
        parameters: { workerCapabilities: [] },
      },
      ...play.lines,
      ...play.entries(),
      {
        line: "end",
        healedAt,
        endedAt: play.clock.now(),
        inspected: { consumers: 0, processes: 1, files: 0, logs: 3 },
      },
    ];
  } finally {
    await play.close();
  }
}
