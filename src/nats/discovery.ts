import { nuid, type Msg, type NatsConnection, type Subscription } from "@nats-io/nats-core";
import { WORK_QUEUE } from "../wire/subjects.ts";
import { mayBeAnswered } from "./reply.ts";

/** Name under which `nats micro ls` finds the service. */
export const SERVICE_NAME = "mandate";

const words = ["PING", "INFO", "STATS"] as const;
type Word = (typeof words)[number];

/** What one verb has done, as ADR-32 counts it. */
class EndpointStats {
  requests = 0;
  errors = 0;
  lastError = "";
  nanoseconds = 0;
}

export interface DiscoveryOptions {
  readonly version: string;
  /** Each with the subject that it is asked at. */
  readonly endpoints: readonly { readonly name: string; readonly subject: string }[];
  readonly metadata: Readonly<Record<string, string>>;
}

/** Answers `$SRV.PING`, `INFO` and `STATS` (ADR-32), so that any NATS tool finds the service and sees how it does. */
export class Discovery {
  readonly #options: DiscoveryOptions;
  readonly #id = nuid.next();
  readonly #started = new Date().toISOString();
  readonly #stats: ReadonlyMap<string, EndpointStats>;
  #subscriptions: readonly Subscription[] = [];

  constructor(options: DiscoveryOptions) {
    this.#options = options;
    this.#stats = new Map(options.endpoints.map(({ name }) => [name, new EndpointStats()]));
  }

  /** Begins to answer: to everybody, to who asks for the name, and to who asks for this instance. */
  start(connection: NatsConnection): void {
    this.#subscriptions = words.flatMap((word) =>
      [`$SRV.${word}`, `$SRV.${word}.${SERVICE_NAME}`, `$SRV.${word}.${SERVICE_NAME}.${this.#id}`].map((subject) =>
        connection.subscribe(subject, { callback: (problem, message) => this.#answer(word, problem, message) }),
      ),
    );
  }

  stop(): void {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#subscriptions = [];
  }

  /** Counts one answered request of an endpoint. */
  count(name: string, tookMs: number, error: string | undefined): void {
    const stats = this.#stats.get(name);
    if (stats === undefined) return;
    stats.requests += 1;
    stats.nanoseconds += tookMs * 1e6;
    if (error === undefined) return;
    stats.errors += 1;
    stats.lastError = error;
  }

  #answer(word: Word, problem: Error | null, message: Msg): void {
    if (problem !== null || !mayBeAnswered(message)) return;
    message.respond(JSON.stringify({ ...this.#identity(word), ...this.#body(word) }));
  }

  #identity(word: Word): object {
    return {
      type: `io.nats.micro.v1.${word.toLowerCase()}_response`,
      name: SERVICE_NAME,
      id: this.#id,
      version: this.#options.version,
      metadata: this.#options.metadata,
    };
  }

  #body(word: Word): object {
    switch (word) {
      case "PING":
        return {};
      case "INFO":
        return {
          description: "Mandate: a durable workload authority; its calls for workers.",
          endpoints: this.#options.endpoints.map((endpoint) => ({
            ...endpoint,
            queue_group: WORK_QUEUE,
            metadata: {},
          })),
        };
      case "STATS":
        return {
          started: this.#started,
          endpoints: this.#options.endpoints.map((endpoint) => ({ ...endpoint, ...this.#counted(endpoint.name) })),
        };
    }
  }

  #counted(name: string): object {
    const { requests, errors, lastError, nanoseconds } = this.#stats.get(name) ?? new EndpointStats();
    return {
      queue_group: WORK_QUEUE,
      num_requests: requests,
      num_errors: errors,
      last_error: lastError,
      processing_time: Math.round(nanoseconds),
      average_processing_time: requests === 0 ? 0 : Math.round(nanoseconds / requests),
    };
  }
}
