import { poll } from "../../cluster/poll.ts";
import { MandateError } from "../../src/core/errors.ts";
import { connect, type Client } from "../../src/sdk/client.ts";

export const scope = { tenantId: "demo", applicationId: "shop" } as const;
/** Every so many pieces of work need an approval. */
const GATED_EACH = 4;

const requester = { kind: "service", id: "container-test" } as const;
const approver = { kind: "human", id: "alice" } as const;

/**
 * Requesters and an approver who call through one address: each admits a piece of work, has it approved where it needs
 * it, waits for its result, and goes on with the next, until told to stop. What was acknowledged is noted.
 */
export class Requesters {
  /** Workloads whose admission was acknowledged. */
  readonly admitted = new Set<string>();
  /** Those whose result was seen. */
  readonly finished = new Set<string>();
  /** Workloads whose success the stream of events told. */
  readonly announced = new Set<string>();
  /** What can't be explained by a fault: it fails the test. */
  readonly surprises: unknown[] = [];
  readonly #requesting: Client;
  readonly #approving: Client;
  readonly #stopping = new AbortController();
  readonly #endListening = new AbortController();
  #givingUp: AbortSignal = new AbortController().signal;
  readonly #running: Promise<void>[];
  readonly #listening: Promise<void>;

  constructor(url: string, count: number) {
    this.#requesting = connect({ url, subject: requester, tryTimeoutMs: 5_000, deadlineMs: 10_000 });
    this.#approving = connect({ url, subject: approver, tryTimeoutMs: 5_000, deadlineMs: 10_000 });
    this.#listening = this.#guarded(() => this.#listen());
    this.#running = Array.from({ length: count }, (_, index) => this.#guarded(() => this.#request(index)));
  }

  /** Waits until so many more pieces of work than now are finished. */
  async progress(more: number, timeoutMs: number): Promise<boolean> {
    const wanted = this.finished.size + more;
    const enough = () => (this.finished.size >= wanted || this.surprises.length > 0 ? true : undefined);
    await poll(enough, { timeoutMs, intervalMs: 50 });
    return this.finished.size >= wanted;
  }

  /**
   * Lets every requester finish its last piece, without asking again once the time is over; then waits until the events
   * have told of all that was finished.
   */
  async stop(timeoutMs: number): Promise<void> {
    this.#givingUp = AbortSignal.timeout(timeoutMs);
    this.#stopping.abort();
    await Promise.all(this.#running);
    const allTold = (): boolean => [...this.finished].every((workloadId) => this.announced.has(workloadId));
    await poll(() => (allTold() ? true : undefined), { timeoutMs, intervalMs: 50 });
    this.#endListening.abort();
    await this.#listening;
  }

  async #guarded(run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (thrown) {
      this.surprises.push(thrown);
    }
  }

  async #listen(): Promise<void> {
    const { signal } = this.#endListening;
    try {
      for await (const { workloadId } of this.#requesting.events({ ...scope, state: "SUCCEEDED", signal }))
        this.announced.add(workloadId);
    } catch (thrown) {
      if (!signal.aborted) throw thrown;
    }
  }

  async #request(index: number): Promise<void> {
    for (let round = 1; !this.#stopping.signal.aborted; round++) {
      const gated = round % GATED_EACH === 0;
      const { workload } = await this.#insist(() =>
        this.#requesting.admit({
          ...scope,
          environment: "test",
          definitionId: gated ? "demo.gated" : "demo.plain",
          definitionRevision: "1",
          trigger: "container test",
          input: { kind: gated ? "gated" : "plain", subject: `${index}-${round}` },
          idempotencyKey: `${index}-${round}`,
          ...(gated ? { approval: { approverKinds: ["human"] } } : {}),
        }),
      );
      const { workloadId, inputHash } = workload;
      this.admitted.add(workloadId);
      if (gated) await this.#insist(() => this.#approving.decide(workloadId, { outcome: "approved", inputHash }));
      const outcome = await this.#insist(() => this.#requesting.result(workloadId));
      if (outcome.state !== "SUCCEEDED") throw new TypeError(`${workloadId} ended as ${outcome.state}`);
      this.finished.add(workloadId);
    }
  }

  /** Goes on asking where the client has given up: an outage may be longer than its patience. Not for ever: see stop. */
  async #insist<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    for (;;) {
      try {
        return await call();
      } catch (thrown) {
        if (!(thrown instanceof MandateError) || !thrown.retry || this.#givingUp.aborted) throw thrown;
      }
    }
  }
}

/** Every workload that the deployment knows, by its id, and the state it is in. */
export async function listAll(url: string): Promise<ReadonlyMap<string, string>> {
  const client = connect({ url, subject: requester });
  const states = new Map<string, string>();
  for (let cursor: string | undefined; ;) {
    const page = await client.list({ ...scope, limit: 1_000, ...(cursor === undefined ? {} : { cursor }) });
    for (const { workloadId, state } of page.workloads) states.set(workloadId, state);
    if (page.cursor === undefined) return states;
    cursor = page.cursor;
  }
}
