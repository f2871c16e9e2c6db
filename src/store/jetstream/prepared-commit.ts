import type { Commit, Put } from "../store.ts";
import { OPERATION_RING } from "../store.ts";
import { MESSAGE_BYTES_MAX } from "./bucket.ts";
import { HEADER_BYTES_MAX, OPERATIONS_HEADER, blockBytes, headerLine, provenanceLines } from "./headers.ts";

/** The server's own limit of one atomic batch. */
const BATCH_MESSAGES_MAX = 1000;
/** What an attempt adds to a batch's message: its id, place and end. */
const BATCH_LINES_BYTES_MAX = 120;
/** A carrier holds nothing; it need only be there when the batch is checked. */
const CARRIER_TTL_SECONDS = 10;
const EMPTY = new Uint8Array(0);

/** One message of a commit, but for what differs from attempt to attempt. */
export interface PreparedMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headerLines: string;
}

/** A commit as it goes over the wire: assertions first, on carriers, then the puts in their order. */
export interface PreparedCommit {
  readonly messages: readonly PreparedMessage[];
  /** How many of the messages, at the front, are carriers. */
  readonly carriers: number;
  /** The highest revision that any guard expects. */
  readonly revisionMax: number;
}

export interface PrepareOptions {
  readonly prefix: string;
  /** The key that carriers of this client are written to, but for its last token. */
  readonly carrierKey: string;
  /** The most bytes that the server takes in one message. */
  readonly messageBytesMax: number;
}

/** The ring that a put stores: its base's, and this operation as the last. */
function ringAfter(put: Put, operationId: string): string {
  if (put.base === "absent") return operationId;
  const { operations } = put.base;
  const kept = operations.length < OPERATION_RING ? operations : operations.slice(1 - OPERATION_RING);
  return kept.length === 0 ? operationId : `${kept.join(",")},${operationId}`;
}

/**
 * Renders a commit. Every put carries its own guard. An assertion needs a message to ride on that has no guard of its own, and
 * must stand before the write of its key: so it rides on a carrier, a key of this client that vanishes by itself.
 * Message ids are the operation's, so that the server recognises a repeat while it remembers.
 *
 * Answers a text that says why when no server could take it; nothing is sent then.
 */
export function prepareCommit(commit: Commit, options: PrepareOptions): PreparedCommit | string {
  const { operationId, puts } = commit;
  const asserts = commit.asserts ?? [];
  const { prefix, carrierKey } = options;
  const provenance = provenanceLines(commit.provenance);
  const messages: PreparedMessage[] = [];
  let revisionMax = 0;
  for (const [index, assertion] of asserts.entries()) {
    if (assertion.revision > revisionMax) revisionMax = assertion.revision;
    const headerLines =
      headerLine("Nats-Expected-Last-Subject-Sequence", assertion.revision) +
      headerLine("Nats-Expected-Last-Subject-Sequence-Subject", prefix + assertion.key) +
      headerLine("Nats-TTL", `${CARRIER_TTL_SECONDS}s`);
    messages.push({ subject: `${prefix}${carrierKey}.${index}`, data: EMPTY, headerLines });
  }
  for (const [index, put] of puts.entries()) {
    const expected = put.base === "absent" ? 0 : put.base.revision;
    if (expected > revisionMax) revisionMax = expected;
    let headerLines =
      headerLine("Nats-Expected-Last-Subject-Sequence", expected) +
      headerLine("Nats-Msg-Id", `${operationId}.${index}`) +
      headerLine(OPERATIONS_HEADER, ringAfter(put, operationId)) +
      provenance;
    if (put.ttlMs !== undefined) headerLines += headerLine("Nats-TTL", `${Math.ceil(put.ttlMs / 1000)}s`);
    messages.push({ subject: prefix + put.key, data: put.value, headerLines });
  }
  const problem = sizeProblem(messages, options.messageBytesMax);
  return problem ?? { messages, carriers: asserts.length, revisionMax };
}

/** Checked here, since a batch's early message that the server refuses leaves no more trace than a lost one. */
function sizeProblem(messages: readonly PreparedMessage[], messageBytesMax: number): string | undefined {
  if (messages.length > BATCH_MESSAGES_MAX)
    return `${messages.length} messages are more than the ${BATCH_MESSAGES_MAX} of one batch`;
  const bytesMax = Math.min(MESSAGE_BYTES_MAX, messageBytesMax);
  for (const { data, headerLines, subject } of messages) {
    const headerBytes = blockBytes(headerLines) + BATCH_LINES_BYTES_MAX;
    if (headerBytes > HEADER_BYTES_MAX)
      return `${headerBytes} bytes of headers are more than the ${HEADER_BYTES_MAX} allowed (${subject})`;
    if (headerBytes + data.length > bytesMax)
      return `${headerBytes + data.length} bytes are more than the ${bytesMax} allowed (${subject})`;
  }
  return undefined;
}
