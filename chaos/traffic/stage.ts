import type { Subject } from "../../src/core/subject.ts";
import type { Draw } from "../draw.ts";
import type { Outcome } from "../history.ts";
import { pause } from "../../src/sdk/backoff.ts";
import type { RunClock } from "../run-clock.ts";
import type { HttpCall, HttpCaller } from "./http-caller.ts";
import type { RawWorker } from "./raw-worker.ts";
import { approvers, operators, type Admission } from "./requests.ts";
import type { Targets } from "./targets.ts";

/** The admitted workload as far as the plays look at it. */
export interface Seen {
  readonly workloadId: string;
  readonly applicationId: string;
  readonly inputHash: string;
  readonly state: string;
}

const TIMEOUTS_MS = [1_500, 4_000, 8_000] as const;

/** What a play has at hand: callers of every kind, a draw of its own, and the time. */
export class Stage {
  readonly draw: Draw;
  readonly http: HttpCaller;
  readonly targets: Targets;
  readonly raw: readonly RawWorker[];
  readonly clock: RunClock;
  /** Aborted when no more is to be begun; what is under way comes to its end soon. */
  readonly ending: AbortSignal;
  readonly #name: string;
  #keys = 0;

  constructor(options: {
    readonly name: string;
    readonly draw: Draw;
    readonly http: HttpCaller;
    readonly targets: Targets;
    readonly raw: readonly RawWorker[];
    readonly clock: RunClock;
    readonly ending: AbortSignal;
  }) {
    this.#name = options.name;
    this.draw = options.draw;
    this.http = options.http;
    this.targets = options.targets;
    this.raw = options.raw;
    this.clock = options.clock;
    this.ending = options.ending;
  }

  /** A key that no other play has. */
  key(): string {
    return `${this.#name}-${++this.#keys}`;
  }

  requestId(): string {
    return `${this.#name}-r${++this.#keys}-${this.draw.word()}`;
  }

  pause(ms: number): Promise<void> {
    return pause(ms, this.ending);
  }

  /** Some of the raw workers, in any order. */
  someRaw(count: number): readonly RawWorker[] {
    return this.draw.shuffled(this.raw).slice(0, count);
  }

  admitCall(admission: Admission): HttpCall {
    const body = { ...admission, requestId: admission.requestId ?? this.requestId() };
    return this.#post("admit", admission.requestedBy, { path: "/v1/workloads", body });
  }

  /** Admits, however often it has to be said; `undefined` when that was refused or is not known. */
  async admit(admission: Admission): Promise<Seen | undefined> {
    const outcome = await this.targets.settle(this.admitCall(admission));
    if (outcome.kind !== "acknowledged") return undefined;
    return (outcome.answer as { readonly workload: Seen }).workload;
  }

  admitMany(admissions: readonly Admission[]): Promise<Outcome> {
    const [first] = admissions;
    const body = admissions.map((admission) => ({ ...admission, requestId: this.requestId() }));
    const subject = first?.requestedBy ?? { kind: "service", id: "orders" };
    return this.targets.settle(this.#post("admitMany", subject, { path: "/v1/workloads/batch", body }));
  }

  /** A verdict on gated work. */
  decide(
    workload: Pick<Seen, "workloadId" | "inputHash">,
    outcome: "approved" | "rejected",
    rest: { readonly by?: Subject; readonly inputHash?: string } = {},
  ): Promise<Outcome> {
    const by = rest.by ?? this.draw.pick(approvers) ?? { kind: "human", id: "grace" };
    const body = {
      outcome,
      ...(outcome === "rejected" || this.draw.chance(0.3) ? { reason: `because ${this.draw.word()}` } : {}),
      inputHash: rest.inputHash ?? workload.inputHash,
      requestId: this.requestId(),
    };
    return this.targets.settle(this.#change("decide", "decision", { subject: by, workload, body }));
  }

  /** Cancel, timeout or retry by an operator. */
  operate(call: "cancel" | "timeout" | "retry", workload: Pick<Seen, "workloadId">): Promise<Outcome> {
    const subject = this.draw.pick(operators) ?? { kind: "human", id: "operator-1" };
    const body = {
      requestId: this.requestId(),
      ...(this.draw.chance(0.5) ? { reason: `asked for ${this.draw.word()}` } : {}),
    };
    return this.targets.settle(this.#change(call, call, { subject, workload, body }));
  }

  /** Reads a workload at any node, at least as new as `revision`. */
  read(workload: Pick<Seen, "workloadId">, subject: Subject, revision?: string): Promise<Outcome> {
    return this.http.call(
      {
        call: "get",
        subject,
        method: "GET",
        path: `/v1/workloads/${workload.workloadId}`,
        timeoutMs: 4_000,
        arguments: { workloadId: workload.workloadId, ...(revision === undefined ? {} : { minRevision: revision }) },
        ...(revision === undefined ? {} : { headers: { "mandate-min-revision": revision } }),
      },
      this.targets.any(),
    );
  }

  #change(
    call: string,
    path: string,
    what: { readonly subject: Subject; readonly workload: Pick<Seen, "workloadId">; readonly body: object },
  ): HttpCall {
    const { workloadId } = what.workload;
    const made = this.#post(call, what.subject, { path: `/v1/workloads/${workloadId}/${path}`, body: what.body });
    const who = call === "decide" ? { decider: what.subject } : { actor: what.subject.id };
    return { ...made, arguments: { workloadId, ...who, ...what.body } };
  }

  #post(
    call: string,
    subject: Subject,
    what: { readonly path: string; readonly body: NonNullable<HttpCall["body"]> },
  ): HttpCall {
    return { call, subject, method: "POST", timeoutMs: this.draw.pick(TIMEOUTS_MS) ?? 4_000, ...what };
  }
}

/** A race that is run over and over. */
export type Play = (stage: Stage) => Promise<void>;
