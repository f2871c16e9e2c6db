import type { HeartbeatAnswer } from "../core/workload/lease.ts";
import type { ItemAnswer } from "./answers.ts";
import { renewalDueOf, trustedUntilOf, type TrustTable } from "./lease-trust.ts";
import { errorOfProblem, isPassing } from "./problem.ts";
import type { FromRenewal, HeldLease, ToRenewal } from "./renewal-messages.ts";
import { sharedMonotonicMs } from "./shared-clock.ts";
import type { WorkConnection } from "./work-connection.ts";

interface Renewal {
  readonly lease: HeldLease;
  dueAt: number;
  /** What the trust table says of it, as far as this thread knows: whatever else it says is another lease's. */
  trustedUntil: number;
  /** When the last request was sent, ms of the shared clock. */
  sentAt: number;
  /** Whether that request's answer is waited for; until {@link dueAt}, then another is sent. */
  isWaiting: boolean;
  /** How long a request is given before another is sent, ms. */
  patienceMs: number;
  cancelTold: boolean;
}

export interface RenewalsOptions {
  readonly leaseMs: number;
  readonly trust: TrustTable;
  readonly tell: (message: FromRenewal) => void;
}

/** Renewals that travel in one request. */
const BATCH_MAX = 100;
/** Leases that come due within this share of their length are renewed with those that are due. */
const GATHER_SHARE = 0.1;

/** How long the first request is given before another is sent, ms: each further one gets twice as long, and a lease at most. */
const patienceOf = (leaseMs: number): number => Math.min(5_000, Math.max(250, leaseMs / 6));
/** No answer is waited for longer than this, ms. */
const ANSWER_MAX_MS = 30_000;

/**
 * Keeps leases alive: each is renewed a third of its length after its last renewal was sent, in batches. A renewal that
 * passes (no answer, a node not ready) is tried again until the authority says that the lease is over. An answer counts
 * however late it comes: where everybody is slow, repeating what was given up would only make it slower, and no holder
 * would ever hear that its lease is kept.
 */
export class Renewals {
  readonly #options: RenewalsOptions;
  readonly #held = new Map<number, Renewal>();
  #call: WorkConnection["call"] | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RenewalsOptions) {
    this.#options = options;
  }

  /** From now on renewals can be sent. */
  begin(call: WorkConnection["call"]): void {
    this.#call = call;
    this.#schedule();
  }

  take(message: Exclude<ToRenewal, { readonly kind: "stop" | "token" }>): void {
    if (message.kind === "hold") {
      const { lease } = message;
      const dueAt = renewalDueOf(lease.sentAt, this.#options.leaseMs);
      this.#held.set(lease.place, {
        lease,
        dueAt,
        trustedUntil: this.#options.trust.read(lease.place),
        sentAt: lease.sentAt,
        isWaiting: false,
        patienceMs: patienceOf(this.#options.leaseMs),
        cancelTold: false,
      });
    } else {
      const renewal = this.#held.get(message.place);
      if (renewal?.lease.claimId !== message.claimId) return;
      if (message.kind === "release") this.#held.delete(message.place);
      else if (!renewal.isWaiting) renewal.dueAt = 0;
    }
    this.#schedule();
  }

  /** Sends nothing more. */
  end(): void {
    clearTimeout(this.#timer);
    this.#call = undefined;
    this.#held.clear();
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#call === undefined) return;
    let next = Number.POSITIVE_INFINITY;
    for (const { dueAt } of this.#held.values()) next = Math.min(next, dueAt);
    if (next === Number.POSITIVE_INFINITY) return;
    const delayMs = Math.min(60_000, Math.max(0, next - sharedMonotonicMs()));
    this.#timer = setTimeout(() => this.#sendDue(), delayMs);
  }

  #sendDue(): void {
    const now = sharedMonotonicMs();
    const until = now + this.#options.leaseMs * GATHER_SHARE;
    const due = [...this.#held.values()].filter(({ dueAt, isWaiting }) => dueAt <= (isWaiting ? now : until));
    for (let from = 0; from < due.length; from += BATCH_MAX) void this.#renew(due.slice(from, from + BATCH_MAX));
    this.#schedule();
  }

  async #renew(batch: readonly Renewal[]): Promise<void> {
    const { leaseMs } = this.#options;
    const sentAt = sharedMonotonicMs();
    for (const renewal of batch) {
      renewal.patienceMs = renewal.isWaiting ? Math.min(leaseMs, 2 * renewal.patienceMs) : patienceOf(leaseMs);
      renewal.isWaiting = true;
      renewal.sentAt = sentAt;
      renewal.dueAt = sentAt + renewal.patienceMs;
    }
    const answers = await this.#ask(batch);
    const again = sharedMonotonicMs() + Math.min(1_000, leaseMs / 10);
    for (const [index, renewal] of batch.entries()) {
      if (this.#held.get(renewal.lease.place) !== renewal) continue;
      const answer = answers[index];
      if (answer !== undefined && (answer.ok || !isPassing(answer.error))) this.#settle(renewal, answer, sentAt);
      // Another one that was sent since then is waited for.
      else if (renewal.sentAt === sentAt) {
        renewal.isWaiting = false;
        renewal.dueAt = Math.min(renewal.dueAt, again);
      }
    }
    this.#schedule();
  }

  #settle(renewal: Renewal, answer: ItemAnswer<HeartbeatAnswer>, sentAt: number): void {
    const { leaseMs, tell, trust } = this.#options;
    const { place, claimId } = renewal.lease;
    if (!answer.ok) {
      this.#held.delete(place);
      trust.replace(place, renewal.trustedUntil, 0);
      tell({ kind: "lost", place, claimId, code: answer.error.code });
      return;
    }
    const trustedUntil = Math.max(renewal.trustedUntil, trustedUntilOf(sentAt, leaseMs));
    trust.replace(place, renewal.trustedUntil, trustedUntil);
    renewal.trustedUntil = trustedUntil;
    renewal.isWaiting = false;
    renewal.dueAt = renewalDueOf(renewal.sentAt, leaseMs);
    tell({ kind: "renewed", place, claimId });
    if (!answer.cancellationRequested || renewal.cancelTold) return;
    renewal.cancelTold = true;
    tell({ kind: "cancel", place, claimId });
  }

  /** One answer a lease, in order; nothing for those that got none. */
  async #ask(batch: readonly Renewal[]): Promise<readonly (ItemAnswer<HeartbeatAnswer> | undefined)[]> {
    const { leaseMs } = this.#options;
    const claims = batch.map(({ lease: { workloadId, claimId, workerId, fencingToken } }) => ({
      workloadId,
      claimId,
      workerId,
      fencingToken,
      extendMs: leaseMs,
    }));
    try {
      const tryTimeoutMs = Math.min(leaseMs, ANSWER_MAX_MS);
      // No repeats within the call: each try renews from its own instant of sending.
      const answer = await this.#call?.("work.heartbeat", { claims }, { deadlineMs: 0, tryTimeoutMs });
      return Array.isArray(answer) ? answer.map(heartbeatAnswer) : [];
    } catch {
      return [];
    }
  }
}

function heartbeatAnswer(item: unknown): ItemAnswer<HeartbeatAnswer> {
  const answer = item as { readonly ok: true } & HeartbeatAnswer;
  if (answer.ok) return answer;
  const { error } = item as { readonly error?: { readonly status?: unknown } };
  return { ok: false, error: errorOfProblem(typeof error?.status === "number" ? error.status : 500, error) };
}
