import type { Authority } from "../authority/authority.ts";
import type { Readiness } from "../authority/api.ts";
import { MandateError } from "../core/errors.ts";
import type { HttpAuthority } from "../http/authority-port.ts";

/**
 * Stands in for the authority until the store is open: HTTP can be asked whether the node is ready from the first
 * moment on, and everything else is refused in due form.
 */
export class GatedAuthority implements HttpAuthority {
  readonly nodeId: string;
  readonly shards: number;
  #authority: Authority | undefined;
  #reason = "the store is not open yet";
  #draining = false;

  constructor(nodeId: string, shards: number) {
    this.nodeId = nodeId;
    this.shards = shards;
  }

  /** What keeps the store from being open, for {@link readiness}. */
  setReason(reason: string): void {
    this.#reason = reason;
  }

  /** From now on every call goes to the authority. */
  open(authority: Authority): void {
    this.#authority = authority;
  }

  /** From now on the node says that it is not ready, and takes no changes over HTTP. */
  drain(): void {
    this.#draining = true;
  }

  readonly call: HttpAuthority["call"] = (name, args, context) => {
    try {
      return this.#opened().call(name, args, context);
    } catch (thrown) {
      return Promise.reject(thrown instanceof Error ? thrown : new MandateError("INTERNAL_ERROR", "a call failed"));
    }
  };

  readonly waitForPosition: HttpAuthority["waitForPosition"] = async (position, timeoutMs) =>
    this.#opened().waitForPosition(position, timeoutMs);

  readonly waitForSettled: HttpAuthority["waitForSettled"] = async (workloadId, waitMs, context) =>
    this.#opened().waitForSettled(workloadId, waitMs, context);

  readonly watch: HttpAuthority["watch"] = (listener) => this.#opened().watch(listener);

  readonly changesSince: HttpAuthority["changesSince"] = (positions, matches) =>
    this.#opened().changesSince(positions, matches);

  readonly position: HttpAuthority["position"] = () => this.#opened().position();

  readonly access: HttpAuthority["access"] = () => this.#opened().access();

  readonly traitsOf: HttpAuthority["traitsOf"] = (workloadId) => this.#opened().traitsOf(workloadId);

  readiness(): Readiness {
    if (this.#draining) return { ready: false, reasons: ["the node is stopping"] };
    return this.#authority?.readiness() ?? { ready: false, reasons: [this.#reason] };
  }

  /** @throws MandateError `AUTHORITY_NOT_READY`. */
  #opened(): Authority {
    if (this.#authority === undefined)
      throw new MandateError("AUTHORITY_NOT_READY", `this node can't serve yet: ${this.#reason}`, {
        details: { reasons: [this.#reason] },
      });
    return this.#authority;
  }
}
