/**
 * A worker process through the legacy `nats` client and nothing else of this product: what any program that speaks NATS
 * can do. It keeps its lease with heartbeats of its own and repeats a report whose answer was lost.
 */
import { randomUUID } from "node:crypto";
import { connect, JSONCodec, type NatsConnection } from "nats";
import { encodeToken } from "../../src/base/token.ts";
import type { Json } from "../../src/base/json.ts";
import { pause } from "../../src/sdk/backoff.ts";
import { Recorder } from "../recorder.ts";
import { RunClock } from "../run-clock.ts";
import { readSetting } from "../system/program.ts";
import { AttemptNotes, doWork, readInput, type Held } from "./attempt.ts";
import type { WorkerSetting } from "./setting.ts";

const REPORT_MS = 30_000;
const codec = JSONCodec<unknown>();

/** `code` is empty when the call was carried out. */
interface Reply {
  readonly code: string;
  readonly body: unknown;
}
interface LegacyClaim extends Held {
  readonly claimId: string;
}

class LegacyWorker {
  readonly #setting: WorkerSetting;
  readonly #nats: NatsConnection;
  readonly #notes: AttemptNotes;
  readonly #workerId: string;
  stopping = false;

  constructor(setting: WorkerSetting, nats: NatsConnection) {
    this.#setting = setting;
    this.#nats = nats;
    this.#notes = new AttemptNotes(new Recorder(setting.record, new RunClock(setting.clock)), setting.name);
    this.#workerId = `legacy-${setting.name}`;
  }

  /** One place of several: claims one workload after the other until told to stop. */
  async work(): Promise<void> {
    const { capabilities, leaseMs } = this.#setting;
    while (!this.stopping) {
      const sentAt = performance.now();
      const request = { workerId: this.#workerId, capabilities, max: 1, waitMs: 500, leaseMs, start: true };
      const reply = await this.#persist("work.next", { ...request, requestId: randomUUID() }, 5_000);
      const claims = reply?.code === "" ? (reply.body as readonly LegacyClaim[]) : [];
      if (reply?.code !== "") await pause(200);
      for (const claim of claims) await this.#attempt(claim, sentAt);
    }
  }

  async #attempt(claim: LegacyClaim, sentAt: number): Promise<void> {
    const { workloadId, claimId, workerId, fencingToken } = claim;
    const fence = { workloadId, claimId, workerId, fencingToken };
    this.#notes.note("handed", claim);
    const context = await this.#persist("work.context", fence, 5_000);
    const trustedUntil = sentAt + this.#setting.leaseMs;
    if (context?.code !== "" || performance.now() >= trustedUntil) return;
    const { input, attemptId } = context.body as { input: Json; attemptId: string };
    const lost = new AbortController();
    this.#notes.note("began", claim);
    const beating = this.#keepAlive(fence, lost, trustedUntil);
    const abandoned = (): void => this.#notes.note("abandoned", claim);
    lost.signal.addEventListener("abort", abandoned, { once: true });
    let report: readonly [string, object];
    try {
      const tools = {
        attempt: Number(/_(\d+)$/.exec(attemptId)?.[1] ?? 1),
        fencingToken,
        signal: lost.signal,
        checkpoint: (state: Json) =>
          this.#persist("work.checkpoint", { ...fence, state, requestId: randomUUID() }, 5_000),
      };
      report = ["work.complete", { output: await doWork(readInput(input), tools, this.#setting) }];
    } catch (thrown) {
      const kind = thrown instanceof Error && "kind" in thrown ? String(thrown.kind) : "error";
      report = lost.signal.aborted ? ["work.confirm-cancel", {}] : ["work.fail", { kind, error: "asked to fail" }];
    }
    lost.signal.removeEventListener("abort", abandoned);
    this.#notes.note("ended", claim);
    const [verb, members] = report;
    await this.#persist(verb, { ...fence, ...members, requestId: randomUUID() }, REPORT_MS);
    lost.abort();
    await beating;
  }

  /** Renews the lease at a third of its length; gives the work up when it is refused or was not renewed in time. */
  async #keepAlive(fence: object, lost: AbortController, trust: number): Promise<void> {
    const { leaseMs } = this.#setting;
    let trustedUntil = trust;
    while (!lost.signal.aborted) {
      await pause(Math.min(leaseMs / 3, trustedUntil - performance.now()), lost.signal);
      if (lost.signal.aborted) return;
      const sentAt = performance.now();
      if (sentAt >= trustedUntil) {
        lost.abort();
        return;
      }
      const reply = await this.#once("work.heartbeat", { ...fence, extendMs: leaseMs }, trustedUntil - sentAt);
      if (reply === undefined || reply.code.startsWith("AUTHORITY")) continue;
      const answer = reply.body as { cancellationRequested?: boolean } | undefined;
      if (reply.code !== "" || answer?.cancellationRequested === true) lost.abort();
      else trustedUntil = sentAt + leaseMs;
    }
  }

  /** Repeats a call until it is answered for good, or the time is up. */
  async #persist(verb: string, members: object, timeoutMs: number): Promise<Reply | undefined> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const reply = await this.#once(verb, members);
      const passing = reply === undefined || /^(AUTHORITY_|WORKLOAD_(OUTCOME|STORAGE|CONFLICT))/.test(reply.code);
      if (!passing || performance.now() > deadline) return reply;
      await pause(200);
    }
  }

  async #once(verb: string, members: object, timeoutMs = 3_000): Promise<Reply | undefined> {
    const { tenantId, applicationId } = this.#setting;
    const subject = `mandate.v1.${encodeToken(tenantId)}.${encodeToken(applicationId)}.${verb}`;
    try {
      const answer = await this.#nats.request(subject, codec.encode(members), {
        timeout: Math.max(1, Math.ceil(timeoutMs)),
      });
      const code = answer.headers?.get("Nats-Service-Error") ?? "";
      return { code, body: code === "" ? codec.decode(answer.data) : undefined };
    } catch {
      return undefined;
    }
  }
}

const setting = readSetting() as WorkerSetting;
const nats = await connect({
  servers: [...setting.servers],
  name: setting.name,
  maxReconnectAttempts: -1,
  reconnectTimeWait: 200,
  pingInterval: 3_000,
  waitOnFirstConnect: true,
  timeout: 2_000,
});
const worker = new LegacyWorker(setting, nats);
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => (worker.stopping = true));
await Promise.all(Array.from({ length: setting.concurrency }, () => worker.work()));
await nats.close();
process.exit(0);
