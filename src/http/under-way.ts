import type { HttpConfig } from "./config.ts";
import type { RouteKind } from "./route.ts";

const nothing = (): void => undefined;

/** Counts what is under way, kind by kind, so that one kind's crowd never keeps out another. Event streams count themselves. */
export class UnderWay {
  readonly #config: HttpConfig;
  #working = 0;
  #waiting = 0;

  constructor(config: HttpConfig) {
    this.#config = config;
  }

  /** Answers what is to be called when the request is done; `undefined` when there is no room for it. */
  enter(kind: RouteKind): (() => void) | undefined {
    switch (kind) {
      case "system":
      case "stream":
        return nothing;
      case "wait":
        if (this.#waiting >= this.#config.waitersMax) return undefined;
        this.#waiting += 1;
        return () => {
          this.#waiting -= 1;
        };
      case "read":
      case "write":
        if (this.#working >= this.#config.inFlightMax) return undefined;
        this.#working += 1;
        return () => {
          this.#working -= 1;
        };
    }
  }
}
