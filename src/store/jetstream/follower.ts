import { nuid } from "@nats-io/nats-core";
import type { Msg, Subscription } from "@nats-io/nats-core";
import { monotonicMs } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { StoreUnavailable } from "../store.ts";
import type { FollowOptions, FollowState, Follower } from "../store.ts";
import type { Barriers } from "./barrier.ts";
import type { StoreConnection } from "./connection.ts";
import {
  HEARTBEAT_MS,
  StreamMissing,
  createConsumer,
  deleteConsumer,
  deliveryOf,
  readStreamIdentity,
} from "./consumer.ts";
import type { Delivery, StreamIdentity } from "./consumer.ts";
import { DeliveredEntry } from "./entry.ts";
import { headerText, isMarker } from "./headers.ts";
import { pause, repeatDelayMs } from "./pause.ts";
import { RequestFailure } from "./requests.ts";

export interface FollowerContext {
  readonly connection: StoreConnection;
  readonly barriers: Barriers;
  readonly stream: string;
  readonly prefix: string;
  /** Tells this client's consumers from others': a token. */
  readonly clientToken: string;
  readonly log: Log;
  onRevision(revision: number): void;
  /** The stream is another one, or went back: revisions known so far say nothing about it. */
  onReplaced(): void;
}

/** Three heartbeats missed: whoever delivered is gone, or the way from there is. */
const SILENCE_MAX_MS = 3 * HEARTBEAT_MS;
const WATCH_MS = 500;
/** A look this late means that the process itself was busy, and heartbeats may lie unread in the socket. */
const WATCH_LATE_MS = 1000;
const LOADING_NEWS_EVERY = 5000;
/** A stream is called missing after so many answers in a row: a server that is starting may not know it yet. */
const MISSING_ANSWERS = 3;
const MISSING_LOOK_MS = 1000;
const IDLE_STATUS = 100;

/**
 * Follows one shard with a push consumer of its own (contract 5.4).
 *
 * The client's watchers trust that silence means that nothing happened. This one checks: deliveries are numbered, so a
 * gap shows with the next one; the server says every second, idle or not, what it delivered last, so a lost tail shows
 * within that second; and silence for three means that the consumer, or its server, is gone. Whatever it is, a new
 * consumer begins behind the last entry that arrived. Before that the old one is deleted, and there are but two names
 * that are used in turn, so that a storm of interruptions can't pile up consumers.
 *
 * The stream is recognised: one that was made anew, or went back behind what was delivered, voids everything (`reset`).
 */
export class ShardFollower implements Follower {
  readonly #context: FollowerContext;
  readonly #options: FollowOptions;
  readonly #subjects: readonly string[];
  readonly #name = nuid.next();
  /** Fulfilled once it has stopped. */
  readonly ended: Promise<void>;
  #subscription: Subscription | undefined;
  #slot = 0;
  #cursor = 0;
  #resets = 0;
  #stopped = false;
  #created: string | undefined;
  #current = false;
  /** The server has said how much there is to deliver. */
  #counted = false;
  /** Number of the last delivery of this consumer. */
  #delivered = 0;
  /** How many more there were then. */
  #pending = 0;
  #heardAt = 0;
  #missingAnswers = 0;
  /** Ends the present consumer's time, with the reason. */
  #interrupt: (reason: string) => void = () => undefined;

  constructor(context: FollowerContext, options: FollowOptions) {
    this.#context = context;
    this.#options = options;
    this.#subjects = options.families.map((family) => `${context.prefix}${family}.>`);
    this.ended = this.#run();
  }

  cursor(): number {
    return this.#cursor;
  }

  resets(): number {
    return this.#resets;
  }

  async stop(): Promise<void> {
    if (!this.#stopped) {
      this.#stopped = true;
      this.#subscription?.unsubscribe();
      this.#interrupt("stopped");
    }
    await this.ended;
  }

  /** One consumer after the other, until it is stopped. */
  async #run(): Promise<void> {
    let failures = 0;
    while (!this.#stopped) {
      const interrupted = new Promise<string>((resolve) => {
        this.#interrupt = resolve;
      });
      try {
        await this.#begin();
        failures = 0;
        const reason = await this.#whileHeard(interrupted);
        if (!this.#stopped) this.#interrupted(reason);
      } catch (thrown) {
        failures += 1;
        if (!this.#stopped) await this.#failed(thrown, failures);
      }
      this.#subscription?.unsubscribe();
      this.#current = false;
    }
    await this.#deleteConsumer();
  }

  /** Starts delivery anew. */
  async #begin(): Promise<void> {
    const { connection, stream } = this.#context;
    if (!(await connection.whenConnected(MISSING_LOOK_MS))) throw new StoreUnavailable("not connected");
    await this.#deleteConsumer();
    this.#slot = 1 - this.#slot;
    await this.#recognise(await readStreamIdentity(connection, stream));
    if (this.#stopped) return;
    const inbox = connection.newInbox();
    this.#delivered = 0;
    this.#counted = false;
    this.#heardAt = monotonicMs();
    const subscription = connection.nats.subscribe(inbox, {
      callback: (error, message) => {
        if (this.#subscription !== subscription || this.#stopped) return;
        if (error !== null) this.#interrupt("the subscription failed");
        else this.#onMessage(message);
      },
    });
    this.#subscription = subscription;
    const pending = await this.#create(inbox);
    this.#missingAnswers = 0;
    this.#counted = true;
    // Messages may have arrived before the answer that says how many there are.
    if (!this.#current) this.#tell({ kind: "loading", pending: Math.max(0, pending - this.#delivered) });
    if (pending === 0) this.#becomeCurrent();
  }

  async #create(inbox: string): Promise<number> {
    const { connection, stream } = this.#context;
    const name = this.#consumerName();
    const options = { stream, name, inbox, subjects: this.#subjects, after: this.#cursor };
    try {
      return await createConsumer(connection, options);
    } catch (thrown) {
      const isLate = thrown instanceof RequestFailure && thrown.reason === "timeout";
      // What it delivers says as much as the answer, which may queue behind that.
      if (isLate && this.#delivered > 0) return this.#delivered + this.#pending;
      // It may exist for all that, or a former one of this name may still be there.
      await deleteConsumer(connection, stream, name);
      throw thrown;
    }
  }

  /** Compares the stream with the one that was followed so far. */
  async #recognise(identity: StreamIdentity): Promise<void> {
    const known = this.#created;
    this.#created = identity.created;
    if (known === undefined) return;
    if (known !== identity.created) this.#context.onReplaced();
    if (this.#cursor === 0) return;
    if (known !== identity.created) this.#reset("the stream was made anew");
    else if (identity.lastRevision < this.#cursor) {
      // A former leader may tell of its past. A barrier can't: only the present can acknowledge it.
      const barrier = await this.#context.barriers.raise();
      if (barrier > this.#cursor) return;
      this.#context.onReplaced();
      this.#reset("the stream went back behind what was delivered");
    }
  }

  #onMessage(message: Msg): void {
    this.#heardAt = monotonicMs();
    const delivery = deliveryOf(message);
    if (delivery === undefined) {
      this.#onStatus(message);
      return;
    }
    // A message that came twice in a row changes nothing; it is no reason to begin anew.
    if (delivery.sequence === this.#delivered && delivery.revision === this.#cursor) return;
    if (delivery.sequence !== this.#delivered + 1) {
      this.#interrupt(`delivery ${delivery.sequence} came after ${this.#delivered}`);
      this.#delivered = Number.NaN;
      return;
    }
    this.#delivered = delivery.sequence;
    this.#pending = delivery.pending;
    // Only while it loads: a server that is cut off from the stream's leader may go on delivering what others tell it.
    if (!this.#current) this.#context.connection.requests.noteLife();
    if (delivery.revision > this.#cursor) this.#deliver(message, delivery);
    if (this.#current) return;
    if (delivery.pending === 0) this.#becomeCurrent();
    else if (delivery.sequence % LOADING_NEWS_EVERY === 0) this.#tell({ kind: "loading", pending: delivery.pending });
  }

  #deliver(message: Msg, { revision, at }: Delivery): void {
    const { prefix, log } = this.#context;
    const before = this.#cursor;
    this.#cursor = revision;
    this.#context.onRevision(revision);
    try {
      const gone = message.data.length === 0 && isMarker(headerText(message));
      const key = message.subject.slice(prefix.length);
      if (!gone) this.#options.onEntry(new DeliveredEntry(message, { key, revision, at }));
    } catch (thrown) {
      this.#cursor = before;
      log.error({ error: String(thrown), revision }, "a follower failed to take an entry");
      this.#interrupt("an entry could not be taken");
      this.#delivered = Number.NaN;
    }
  }

  #onStatus(message: Msg): void {
    const { headers } = message;
    if (headers?.code !== IDLE_STATUS) {
      this.#interrupt(`status ${headers?.code ?? "unknown"}`);
      return;
    }
    if (message.reply !== undefined && message.reply !== "") {
      message.respond();
      return;
    }
    const last = headers.get("Nats-Last-Consumer");
    const stalled = headers.get("Nats-Consumer-Stalled");
    if (last !== "" && Number(last) !== this.#delivered) this.#interrupt("the last deliveries got lost");
    else if (stalled !== "") this.#context.connection.nats.publish(stalled);
    // What was superseded while it was loading is counted as pending, and never comes. An idle consumer has no more.
    else if (last !== "" && this.#counted) this.#becomeCurrent();
  }

  /** Adds to the reasons that nothing is heard any more. */
  async #whileHeard(interrupted: Promise<string>): Promise<string> {
    let lookedAt = monotonicMs();
    const watch = setInterval(() => {
      const now = monotonicMs();
      const late = now - lookedAt > WATCH_MS + WATCH_LATE_MS;
      lookedAt = now;
      if (!late && now - this.#heardAt > SILENCE_MAX_MS) this.#interrupt("nothing is heard of the consumer");
    }, WATCH_MS);
    try {
      return await interrupted;
    } finally {
      clearInterval(watch);
    }
  }

  #becomeCurrent(): void {
    if (this.#current) return;
    this.#current = true;
    this.#tell({ kind: "current", revision: this.#cursor });
  }

  #reset(reason: string): void {
    this.#cursor = 0;
    this.#tell({ kind: "reset", reason });
  }

  #interrupted(reason: string): void {
    this.#resets += 1;
    this.#context.log.warn({ stream: this.#context.stream, reason, cursor: this.#cursor }, "following was interrupted");
    this.#tell({ kind: "interrupted", reason });
  }

  async #failed(thrown: unknown, failures: number): Promise<void> {
    if (thrown instanceof StreamMissing) {
      this.#missingAnswers += 1;
      if (this.#missingAnswers === MISSING_ANSWERS) {
        this.#context.log.error({ stream: this.#context.stream }, "the stream is missing");
        this.#tell({ kind: "missing", reason: `stream ${this.#context.stream} is not there` });
      }
    } else {
      this.#missingAnswers = 0;
      if (failures === 1) this.#tell({ kind: "interrupted", reason: String(thrown) });
    }
    await pause(this.#missingAnswers >= MISSING_ANSWERS ? MISSING_LOOK_MS : repeatDelayMs(failures + 4));
  }

  #tell(state: FollowState): void {
    if (this.#stopped) return;
    try {
      this.#options.onState(state);
    } catch (thrown) {
      this.#context.log.error({ error: String(thrown), state: state.kind }, "a follower failed to take news");
    }
  }

  #consumerName(): string {
    return `mandate_${this.#context.clientToken}_${this.#name}_${this.#slot}`;
  }

  #deleteConsumer(): Promise<void> {
    if (this.#created === undefined) return Promise.resolve();
    return deleteConsumer(this.#context.connection, this.#context.stream, this.#consumerName());
  }
}
