import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** What is measured about one route. */
export interface RouteMeter {
  /** A request has been answered: with which status, after how many ms. */
  answered(status: number, tookMs: number): void;
}

/** Measures of the HTTP door. Labels are routes of the table and statuses of the registry: both bounded. */
export class HttpMeters {
  readonly #requests: Counter<"route" | "status">;
  readonly #seconds: Histogram<"route">;
  readonly #streams: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#requests = new Counter({
      name: "mandate_http_requests_total",
      help: "Requests answered, by route and status.",
      labelNames: ["route", "status"],
      registers,
    });
    this.#seconds = new Histogram({
      name: "mandate_http_request_seconds",
      help: "Time until the answer was ready, long polls included.",
      labelNames: ["route"],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
      registers,
    });
    this.#streams = new Gauge({
      name: "mandate_http_event_streams",
      help: "Event streams that are open now.",
      registers,
    });
  }

  /** The measures of one route, their labels looked up once. */
  route(route: string): RouteMeter {
    const seconds = this.#seconds.labels(route);
    const byStatus = new Map<number, { inc(): void }>();
    return {
      answered: (status, tookMs) => {
        let requests = byStatus.get(status);
        if (requests === undefined) byStatus.set(status, (requests = this.#requests.labels(route, String(status))));
        requests.inc();
        seconds.observe(tookMs / 1000);
      },
    };
  }

  streams(open: number): void {
    this.#streams.set(open);
  }
}
