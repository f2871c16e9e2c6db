import type { Outcome } from "../history.ts";
import { workerIdOf } from "../model/identities.ts";
import { TENANT, TRAFFIC_RUNTIME } from "../system/setting.ts";
import type { HttpCall } from "./http-caller.ts";
import type { HeldClaim, RawClaim, RawReply, RawWorker } from "./raw-worker.ts";
import { operators } from "./requests.ts";
import type { Stage } from "./stage.ts";

/** What a registration of a process says. */
export interface Registration {
  readonly incarnation: string;
  readonly concurrency: number;
  readonly declaredCapabilities: readonly string[];
  readonly heartbeatTimeoutMs: number;
  readonly version?: string;
}

/** What is done to a worker over HTTP. */
type Operation = "drain" | "recover" | "remove";

/** Both say this when they are heard, or reconciled. */
const usual = { version: "1", capabilityVersion: 0 } as const;

/**
 * A worker of the registry as one of its processes: it calls through whatever connection it is given, several at once, and
 * so reaches any node. Which claims it holds is written down here alone; the authority knows better.
 */
export class RegisteredWorker {
  readonly name: string;
  readonly applicationId: string;
  readonly workerId: string;
  readonly registration: Registration;
  readonly held = new Map<string, HeldClaim>();
  readonly #stage: Stage;

  constructor(
    stage: Stage,
    options: { readonly name: string; readonly applicationId: string; readonly registration: Registration },
  ) {
    this.#stage = stage;
    this.name = options.name;
    this.applicationId = options.applicationId;
    this.registration = options.registration;
    this.workerId = workerIdOf({ tenantId: TENANT, applicationId: this.applicationId, name: this.name });
  }

  /** The next process of this worker, which does not know what the one before it held. */
  successor(changes: Partial<Registration> = {}): RegisteredWorker {
    const { name, applicationId } = this;
    const incarnation = `${name}-${this.#stage.draw.word()}`;
    const registration = { ...this.registration, incarnation, ...changes };
    return new RegisteredWorker(this.#stage, { name, applicationId, registration });
  }

  register(raw: RawWorker, changes: Partial<Registration> = {}): Promise<RawReply> {
    const { name, registration } = this;
    const asked = { name, runtime: TRAFFIC_RUNTIME, version: usual.version, ...registration, ...changes };
    return raw.settle(this.applicationId, "worker.register", asked, { forMs: 8_000 });
  }

  /** One heartbeat, with the claims that it believes to run. */
  beat(raw: RawWorker, health = "HEALTHY"): Promise<RawReply> {
    const claimed = [...this.held.values()].map(({ claimId }) => claimId);
    const said = { ...this.#named(), ...usual, health, active: claimed.length, runningClaims: claimed };
    return raw.settle(this.applicationId, "worker.heartbeat", { ...said, timestamp: this.#now() }, { forMs: 4_000 });
  }

  reconcile(raw: RawWorker): Promise<RawReply> {
    const knownClaims = [...this.held.values()].map(({ claimId }) => claimId);
    const said = { ...this.#named(), ...usual, knownClaims, runningAttempts: [], timestamp: this.#now() };
    return raw.settle(this.applicationId, "worker.reconcile", said, { forMs: 4_000 });
  }

  /** Heard, and brought back into step when it was given up. */
  async appear(raw: RawWorker): Promise<RawReply> {
    const reply = await this.beat(raw);
    return reply.code === "WORKER_RECOVERY_REQUIRED" ? this.reconcile(raw) : reply;
  }

  drain(raw: RawWorker): Promise<RawReply> {
    return raw.settle(this.applicationId, "worker.drain", this.#named(), { forMs: 4_000 });
  }

  /** Claims one workload by its id. */
  async claim(raw: RawWorker, workloadId: string, leaseMs: number): Promise<readonly HeldClaim[]> {
    const trustedUntil = this.#stage.clock.now() + leaseMs;
    const reply = await raw.settle(
      this.applicationId,
      "work.claim",
      { ...this.#named(), workloadId, leaseMs, start: true },
      { forMs: 4_000 },
    );
    return reply.code === "" ? this.#take(raw, [reply.body as RawClaim], trustedUntil) : [];
  }

  /** Asks for work: as a request that is repeated until it is answered, twice at once, or as one that is made once. */
  async next(
    raw: RawWorker,
    ask: { readonly max: number; readonly waitMs: number; readonly leaseMs: number },
    how: "once" | "repeated" | "twice",
  ): Promise<readonly HeldClaim[]> {
    const trustedUntil = this.#stage.clock.now() + ask.leaseMs;
    const request = { ...this.#named(), ...ask, start: true };
    const requestId = raw.requestId();
    const replies = await Promise.all(
      how === "once"
        ? [raw.once(this.applicationId, "work.next", request)]
        : Array.from({ length: how === "twice" ? 2 : 1 }, () =>
            raw.settle(this.applicationId, "work.next", request, { requestId, forMs: 6_000 }),
          ),
    );
    const [reply] = replies.filter(({ code }) => code === "");
    return this.#take(raw, (reply?.body ?? []) as readonly RawClaim[], trustedUntil);
  }

  /** What an operator does to it over HTTP, or what it does itself. */
  operate(operation: Operation, how: { readonly asItself?: boolean } = {}): Promise<Outcome> {
    const { draw, targets } = this.#stage;
    const { workerId, incarnation } = this.#named();
    const owner = { tenantId: TENANT, applicationId: this.applicationId };
    const body = {
      ...(how.asItself === true ? { incarnation } : {}),
      requestId: this.#stage.requestId(),
    };
    const call: HttpCall = {
      call: `${operation}Worker`,
      subject: draw.pick(operators) ?? { kind: "human", id: "operator-1" },
      method: "POST",
      path: `/v1/workers/${workerId}/${operation}?${new URLSearchParams(owner).toString()}`,
      body,
      arguments: { ...owner, workerId, ...body },
      timeoutMs: 4_000,
    };
    return targets.settle(call);
  }

  #named(): { readonly workerId: string; readonly incarnation: string } {
    return { workerId: this.workerId, incarnation: this.registration.incarnation };
  }

  #now(): number {
    return Math.round(this.#stage.clock.now());
  }

  #take(raw: RawWorker, claims: readonly RawClaim[], trustedUntil: number): readonly HeldClaim[] {
    return claims.map((claim) => {
      const held = { ...claim, trustedUntil };
      raw.hand(held);
      this.held.set(claim.workloadId, held);
      return held;
    });
  }
}
