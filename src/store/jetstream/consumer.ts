import type { Msg } from "@nats-io/nats-core";
import type { StoreConnection } from "./connection.ts";
import { serverCode } from "./server-codes.ts";
import type { ServerError } from "./server-codes.ts";

/** How often an idle server says that it is there, and where it is. */
export const HEARTBEAT_MS = 1000;
/** When the server drops a consumer that nobody listens to, in case it could not be deleted. */
const INACTIVE_MS = 30_000;
/** How long the answer to the creation of a consumer is waited for. */
export const CREATE_TIMEOUT_MS = 3000;
const DELETE_TIMEOUT_MS = 800;
const NANOSECONDS_PER_MS = 1_000_000;

/** The stream does not exist, as far as the server that answered knows. */
export class StreamMissing extends Error {
  override readonly name = "StreamMissing";
}

/** The server did not do what was asked; it may the next time. */
export class ManagementRefused extends Error {
  override readonly name = "ManagementRefused";
}

/** What tells one stream from another of the same name. */
export interface StreamIdentity {
  readonly created: string;
  readonly lastRevision: number;
}

async function manage<Answer>(
  connection: StoreConnection,
  call: { readonly subject: string; readonly body?: object; readonly timeoutMs: number },
): Promise<Answer> {
  const answer = await connection.requests.one(
    `$JS.API.${call.subject}`,
    call.body === undefined ? "" : JSON.stringify(call.body),
    { timeoutMs: call.timeoutMs },
  );
  const parsed = answer.json<Answer & { readonly error?: ServerError }>();
  if (parsed.error === undefined) return parsed;
  if (parsed.error.err_code === serverCode.streamNotFound) throw new StreamMissing(parsed.error.description);
  throw new ManagementRefused(parsed.error.description);
}

/** @throws StreamMissing, ManagementRefused, RequestFailure. */
export async function readStreamIdentity(connection: StoreConnection, stream: string): Promise<StreamIdentity> {
  const { created, state } = await manage<{ created: string; state: { last_seq: number } }>(connection, {
    subject: `STREAM.INFO.${stream}`,
    timeoutMs: CREATE_TIMEOUT_MS,
  });
  return { created, lastRevision: state.last_seq };
}

export interface ConsumerOptions {
  readonly stream: string;
  readonly name: string;
  /** Where to deliver. */
  readonly inbox: string;
  readonly subjects: readonly string[];
  /** Deliver what is newer than this revision; 0: the latest of each key, then what follows. */
  readonly after: number;
}

/**
 * Creates a push consumer; answers how many messages it has to deliver at once.
 *
 * @throws StreamMissing, ManagementRefused, RequestFailure.
 */
export async function createConsumer(connection: StoreConnection, options: ConsumerOptions): Promise<number> {
  const { stream, name, inbox, subjects, after } = options;
  const config = {
    name,
    deliver_subject: inbox,
    ack_policy: "none",
    replay_policy: "instant",
    max_deliver: 1,
    mem_storage: true,
    num_replicas: 1,
    flow_control: true,
    idle_heartbeat: HEARTBEAT_MS * NANOSECONDS_PER_MS,
    inactive_threshold: INACTIVE_MS * NANOSECONDS_PER_MS,
    filter_subjects: subjects,
    ...(after > 0
      ? { deliver_policy: "by_start_sequence", opt_start_seq: after + 1 }
      : { deliver_policy: "last_per_subject" }),
  };
  const info = await manage<{ num_pending: number; delivered: { consumer_seq: number } }>(connection, {
    subject: `CONSUMER.CREATE.${stream}.${name}`,
    body: { stream_name: stream, config, action: "create" },
    timeoutMs: CREATE_TIMEOUT_MS,
  });
  return info.num_pending + info.delivered.consumer_seq;
}

/** Deletes a consumer if it can; the server forgets it by itself after a while otherwise. */
export async function deleteConsumer(connection: StoreConnection, stream: string, name: string): Promise<void> {
  if (!connection.connected) return;
  await manage(connection, { subject: `CONSUMER.DELETE.${stream}.${name}`, timeoutMs: DELETE_TIMEOUT_MS }).catch(
    () => undefined,
  );
}

/** Where a delivered message stands. */
export interface Delivery {
  readonly revision: number;
  /** Counts what the consumer delivered, from 1, without gaps. */
  readonly sequence: number;
  /** Store time, epoch ms. */
  readonly at: number;
  /** What the consumer has yet to deliver after this one. */
  readonly pending: number;
}

const ACKNOWLEDGE_SUBJECT = "$JS.ACK.";

/** Reads a delivered message's place from its reply subject; `undefined` for what is no message of the stream. */
export function deliveryOf(message: Msg): Delivery | undefined {
  const reply = message.reply;
  if (reply === undefined || !reply.startsWith(ACKNOWLEDGE_SUBJECT)) return undefined;
  // $JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<delivered>.<revision>.<sequence>.<nanoseconds>.<pending>[.<random>]
  const tokens = reply.split(".");
  const start = tokens.length > 9 ? 7 : 5;
  return {
    revision: Number(tokens[start]),
    sequence: Number(tokens[start + 1]),
    at: Number((tokens[start + 2] ?? "").slice(0, -6)),
    pending: Number(tokens[start + 3]),
  };
}
