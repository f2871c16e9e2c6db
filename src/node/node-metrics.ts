import { collectDefaultMetrics, Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { CallName } from "../authority/api.ts";
import type { Authority } from "../authority/authority.ts";
import { workloadStates } from "../core/workload/states.ts";
import type { CommitOutcome } from "../store/store.ts";

/** How often the delay of the event loop is sampled, ms. Every look wakes the process: at 10 a node at rest never rests. */
const LOOP_LOOK_MS = 50;

/** Measures of a node beside those of its doors. Every label has few values: calls, codes, actions, outcomes, states. */
export class NodeMetrics {
  readonly #calls: Counter<"call" | "code">;
  readonly #callSeconds: Histogram<"call">;
  readonly #commits: Counter<"action" | "outcome">;
  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
    const registers = [registry];
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_LOOK_MS });
    this.#calls = new Counter({
      name: "mandate_calls_total",
      help: "Calls of the authority, by call and refusal code; `OK` when it was none.",
      labelNames: ["call", "code"],
      registers,
    });
    this.#callSeconds = new Histogram({
      name: "mandate_call_seconds",
      help: "Time that a call of the authority took, long polls included.",
      labelNames: ["call"],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    });
    this.#commits = new Counter({
      name: "mandate_commits_total",
      help: "Commits to the store, by action and outcome.",
      labelNames: ["action", "outcome"],
      registers,
    });
  }

  called(call: CallName, code: string | undefined, tookMs: number): void {
    this.#calls.inc({ call, code: code ?? "OK" });
    this.#callSeconds.observe({ call }, tookMs / 1000);
  }

  committed(action: string, outcome: CommitOutcome["kind"]): void {
    this.#commits.inc({ action, outcome });
  }

  /** Adds what is read from the authority whenever the measures are asked for. */
  observe(authority: Authority): void {
    const registers = [this.#registry];
    const gauge = (name: string, help: string, read: () => number | undefined): void => {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          const value = read();
          if (value !== undefined) this.set(value);
        },
      });
    };
    gauge("mandate_ready", "1 when the node may serve.", () => (authority.readiness().ready ? 1 : 0));
    gauge("mandate_view_age_seconds", "How old the node's view is.", () => {
      const { viewAgeMs } = authority.readiness();
      return viewAgeMs === undefined ? undefined : viewAgeMs / 1000;
    });
    gauge("mandate_clock_offset_seconds", "The node's clock minus the store's.", () => {
      const { clockOffsetMs } = authority.readiness();
      return clockOffsetMs === undefined ? undefined : clockOffsetMs / 1000;
    });
    gauge("mandate_view_resets", "How often the view of a shard began anew.", () => authority.viewResets());
    gauge("mandate_view_divergences", "How often the view was found to differ from the store.", () =>
      authority.divergences(),
    );
    new Gauge({
      name: "mandate_workloads",
      help: "Workloads in the node's view, by state.",
      labelNames: ["state"],
      registers,
      collect() {
        const counts = authority.counts();
        for (const state of workloadStates) this.set({ state }, counts.get(state) ?? 0);
      },
    });
  }
}
