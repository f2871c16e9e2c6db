import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { ErrorCode } from "../core/errors.ts";

/** Measures of the NATS door. Labels are verbs and codes of the registry: both bounded. */
export class WorkerMeters {
  readonly #requests: Counter<"verb" | "code">;
  readonly #seconds: Histogram<"verb">;
  readonly #byLabels = new Map<string, { inc(): void }>();
  readonly #secondsByVerb = new Map<string, { observe(value: number): void }>();

  constructor(registry: Registry, underWay: () => number) {
    const registers = [registry];
    this.#requests = new Counter({
      name: "mandate_worker_requests_total",
      help: "Worker requests answered, by verb and code; OK when it was no refusal.",
      labelNames: ["verb", "code"],
      registers,
    });
    this.#seconds = new Histogram({
      name: "mandate_worker_request_seconds",
      help: "Time until the answer was ready, long polls included.",
      labelNames: ["verb"],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
      registers,
    });
    new Gauge({
      name: "mandate_worker_requests_under_way",
      help: "Worker requests that are not answered yet, long polls included.",
      registers,
      collect() {
        this.set(underWay());
      },
    });
  }

  /** A request has been answered. */
  answered(verb: string, code: ErrorCode | undefined, tookMs: number): void {
    const label = code ?? "OK";
    const key = `${verb} ${label}`;
    let requests = this.#byLabels.get(key);
    if (requests === undefined) this.#byLabels.set(key, (requests = this.#requests.labels(verb, label)));
    requests.inc();
    let seconds = this.#secondsByVerb.get(verb);
    if (seconds === undefined) this.#secondsByVerb.set(verb, (seconds = this.#seconds.labels(verb)));
    seconds.observe(tookMs / 1000);
  }
}
