import { unpackValue } from "../../src/wire/codec.ts";
import type { Outcome } from "../history.ts";
import type { Recorder } from "../recorder.ts";
import { bearerOf } from "./bearer.ts";
import { frameHeader, frameStatus, type NatsFrame } from "./nats-frames.ts";

/** What one connection's two directions tell the tap. */
export interface TappedConnection {
  readonly toServer: { readonly arrived: (frame: NatsFrame) => void; readonly passed: (frame: NatsFrame) => void };
  readonly toClient: { readonly arrived: (frame: NatsFrame) => void; readonly passed: (frame: NatsFrame) => void };
  readonly closed: () => void;
}

/** Listens to a client's connections to NATS. */
export interface NatsTap {
  connection(): TappedConnection;
}

const callNames: { readonly [verb: string]: string } = {
  "worker.register": "registerWorker",
  "worker.heartbeat": "heartbeatWorker",
  "worker.drain": "drainWorker",
  "worker.reconcile": "reconcileWorker",
  "work.next": "claimNext",
  "work.claim": "claim",
  "work.start": "start",
  "work.heartbeat": "heartbeat",
  "work.context": "executionContext",
  "work.checkpoint": "checkpoint",
  "work.complete": "complete",
  "work.fail": "fail",
  "work.confirm-cancel": "confirmCancel",
};

type Members = { readonly [name: string]: unknown };
const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function decode(frame: NatsFrame): unknown {
  const bytes = frame.bytes.subarray(frame.payloadFrom, frame.payloadTo);
  try {
    if (frameHeader(frame, "content-type") === "application/msgpack") return unpackValue(bytes);
    return bytes.length === 0 ? undefined : JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}

function outcomeOf(frame: NatsFrame): Outcome {
  if (frameStatus(frame) === 503) return { kind: "unknown", cause: "unsent: nobody answers" };
  const code = frameHeader(frame, "nats-service-error");
  const body = decode(frame);
  if (code === undefined) return { kind: "acknowledged", answer: body };
  const problem = isMembers(body) ? body : {};
  const { details, detail } = problem;
  const definite = problem["definite"] === true;
  const told = typeof detail === "string" ? { told: detail } : {};
  return { kind: "refused", code, definite, ...(details === undefined ? {} : { details }), ...told };
}

/**
 * Records every worker call that passes: from the moment that the request arrives on its way to a server until the answer
 * has been handed on to the caller. That lies within the time in which the caller itself waits, so it may be taken for
 * the call's own. An answer that never arrives leaves the outcome unknown, as it does for the caller.
 */
export class WorkTap implements NatsTap {
  readonly #recorder: Recorder;
  readonly #caller: string;
  /** By the subject that the answer comes to. */
  readonly #open = new Map<string, { readonly finish: (outcome: Outcome) => void; readonly replies: Set<string> }>();

  constructor(recorder: Recorder, caller: string) {
    this.#recorder = recorder;
    this.#caller = caller;
  }

  connection(): TappedConnection {
    const mine = new Set<string>();
    return {
      toServer: { arrived: (frame) => this.#request(frame, mine), passed: () => undefined },
      toClient: { arrived: () => undefined, passed: (frame) => this.#answer(frame) },
      closed: () => {
        for (const reply of mine) this.#finish(reply, { kind: "unknown", cause: "the connection broke" });
      },
    };
  }

  #request(frame: NatsFrame, mine: Set<string>): void {
    const [product, version, tenantId, applicationId, ...rest] = frame.subject.split(".");
    const verb = rest.join(".");
    const name = callNames[verb];
    if (product !== "mandate" || version === undefined || name === undefined || frame.reply === "") return;
    const value = decode(frame);
    const members = isMembers(value) ? value : {};
    const requestId = members["requestId"];
    const call = name === "heartbeat" && "claims" in members ? "heartbeatMany" : name;
    const bearer = bearerOf(frameHeader(frame, "mandate-grant"));
    mine.add(frame.reply);
    const finish = this.#recorder.begin({
      caller: this.#caller,
      surface: "nats",
      call,
      arguments: { tenantId, applicationId, ...members },
      ...(typeof requestId === "string" ? { requestId } : {}),
      ...(bearer === undefined ? {} : { bearer }),
    });
    this.#open.set(frame.reply, { finish, replies: mine });
  }

  #answer(frame: NatsFrame): void {
    if (this.#open.has(frame.subject)) this.#finish(frame.subject, outcomeOf(frame));
  }

  #finish(reply: string, outcome: Outcome): void {
    const call = this.#open.get(reply);
    call?.finish(outcome);
    call?.replies.delete(reply);
    this.#open.delete(reply);
  }
}
