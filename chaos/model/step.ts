import type { WorkloadEvent, WorkloadRecord } from "../../src/core/workload/record.ts";
import type { WorkloadState } from "../../src/core/workload/states.ts";
import { mayMove, eventTypeOf, isPassedThrough } from "./states.ts";

/** The guarantee that a breach belongs to; `succession` is for everything that has no name of its own. */
export type Rule = "succession" | "tokens" | "fence" | "timing" | "budget" | "approval" | "decision" | "result";

export interface Breach {
  readonly rule: Rule;
  readonly message: string;
}

/** The command that one commit stands for; `none`: nothing in the rules makes such a commit. */
export type Command =
  | "admit"
  | "claim"
  | "start"
  | "heartbeat"
  | "checkpoint"
  | "complete"
  | "fail"
  | "confirmCancel"
  | "cancel"
  | "timeout"
  | "retry"
  | "decide"
  | "expire"
  | "recover"
  | "exhaust"
  | "disown"
  | "none";

/** What else is committed at the moment of a commit. */
export interface World {
  /** The state of a workload of the same tenant and application; undefined when there is none. */
  stateOf(workloadId: string): WorkloadState | undefined;
  /** Whether the worker that took a claim lives on in another process. Absent: none does. */
  isSuperseded?(claim: { readonly workerId: string; readonly claimId: string }): boolean;
}

/** How one commit is explained by the rules. */
export interface Step {
  readonly command: Command;
  /** The instant it was decided at, as it is recorded, epoch ms. */
  readonly at: number;
  readonly breaches: readonly Breach[];
  /** For a pass, and for a claim of delayed work: the instant that had to come first. */
  readonly dueAt?: number;
  /** For a worker's write: how long its lease had been over, ms. Only a grace after an outage allows it. */
  readonly lateByMs?: number;
}

/** An event as the rules ask for it. */
export interface ExpectedEvent {
  readonly to: WorkloadState;
  readonly actor?: string;
  /** Evidence may hold more. */
  readonly evidence?: { readonly [name: string]: string | number | undefined };
}

/** The fields that a command changes, beside history, state and updatedAt. */
export type Changes = { -readonly [Field in keyof WorkloadRecord]?: WorkloadRecord[Field] | undefined };

/** One commit under examination: what was before, what came, and what is found wrong with it. */
export class Examination {
  readonly before: WorkloadRecord;
  readonly after: WorkloadRecord;
  readonly world: World;
  readonly events: readonly WorkloadEvent[];
  readonly breaches: Breach[] = [];
  readonly #expected: Changes = {};

  constructor(before: WorkloadRecord, after: WorkloadRecord, world: World) {
    this.before = before;
    this.after = after;
    this.world = world;
    this.events = after.history.slice(before.history.length);
  }

  /** The instant of the new events. */
  get at(): number {
    return this.events[0]?.at ?? this.after.updatedAt;
  }

  breach(rule: Rule, message: string): void {
    this.breaches.push({ rule, message });
  }

  require(condition: boolean, rule: Rule, message: string): void {
    if (!condition) this.breach(rule, message);
  }

  /** The fields must come out as given; those that are never named must not change. */
  expect(changes: Changes): void {
    Object.assign(this.#expected, changes);
  }

  /** The whole record as the rules want it, but for history, state and times. */
  expected(): Changes {
    return { ...this.before, ...this.#expected };
  }

  /** The new events must be these, in this order. */
  expectEvents(expected: readonly ExpectedEvent[]): void {
    const wanted = expected.map(({ to }) => to).join(", ");
    const found = this.events.map(({ to }) => to).join(", ");
    this.require(wanted === found, "succession", `the commit should lead to ${wanted || "no event"}, not ${found}`);
    for (const [index, { actor, evidence = {} }] of expected.entries()) {
      const event = this.events[index];
      if (event === undefined) continue;
      if (actor !== undefined)
        this.require(event.actor === actor, "succession", `the actor of ${event.to} is ${event.actor}, not ${actor}`);
      for (const [name, value] of Object.entries(evidence)) {
        if (value === undefined || event.evidence[name] === String(value)) continue;
        this.breach("succession", `evidence ${name} of ${event.to} is ${event.evidence[name]}, not ${value}`);
      }
    }
  }
}

/** What holds for the events of every commit: numbers, types, the table, and time that never runs backwards. */
export function examineEvents(examination: Examination): void {
  const { before, after, events } = examination;
  let sequence = before.history.length;
  let state = before.state;
  let at = before.history.at(-1)?.at ?? 0;
  for (const event of events) {
    sequence += 1;
    examination.require(event.sequence === sequence, "succession", `event ${sequence} has number ${event.sequence}`);
    examination.require(event.from === state, "succession", `event ${sequence} comes from ${event.from}, not ${state}`);
    examination.require(mayMove(state, event.to), "succession", `the table has no move from ${state} to ${event.to}`);
    examination.require(event.type === eventTypeOf(event.to), "succession", `${event.to} is no ${event.type}`);
    examination.require(event.at >= at, "succession", `event ${sequence} is earlier than the one before`);
    examination.require(event.at === examination.at, "succession", `the events of one commit differ in time`);
    ({ to: state, at } = event);
  }
  examination.require(
    after.state === state,
    "succession",
    `the state is ${after.state}, the last event led to ${state}`,
  );
  examination.require(!isPassedThrough(after.state), "succession", `a commit ends in ${after.state}`);
}
