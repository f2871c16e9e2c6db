import { nuid } from "@nats-io/nats-core";
import type { Msg } from "@nats-io/nats-core";
import type { AttemptReply } from "../resolution.ts";
import { parseAcknowledgement, revisionNamed } from "./acknowledgement.ts";
import type { StoreConnection } from "./connection.ts";
import { RenderedHeaders, headerLine } from "./headers.ts";
import type { PreparedCommit } from "./prepared-commit.ts";
import { RequestFailure } from "./requests.ts";
import { serverCode, shapeCodes } from "./server-codes.ts";
import type { ServerError } from "./server-codes.ts";

/**
 * Sends a commit once and says what the answer proves (contract 5.3): one round trip, one guarded publish for a single
 * put, otherwise one atomic batch whose messages all leave at once and whose last one is answered. Never rejects.
 */
export async function attemptCommit(
  connection: StoreConnection,
  prepared: PreparedCommit,
  timeoutMs: number,
): Promise<AttemptReply> {
  try {
    return readAnswer(await send(connection, prepared, timeoutMs), prepared);
  } catch (thrown) {
    if (!(thrown instanceof RequestFailure)) return { kind: "lost", cause: String(thrown) };
    switch (thrown.reason) {
      case "no-responders":
        return { kind: "unreached", cause: "no server takes writes" };
      case "not-sent":
        return { kind: "unreached", cause: "it could not be sent" };
      case "timeout":
        return { kind: "lost", cause: "no answer in time" };
      case "disconnected":
        return { kind: "lost", cause: "the connection broke before the answer" };
    }
  }
}

function send(connection: StoreConnection, { messages }: PreparedCommit, timeoutMs: number): Promise<Msg> {
  const last = messages.at(-1);
  if (last === undefined) throw new RequestFailure("not-sent");
  if (messages.length === 1) {
    const headers = new RenderedHeaders(last.headerLines);
    return connection.requests.one(last.subject, last.data, { headers, timeoutMs });
  }
  // A batch that broke off can't be taken up again, so each attempt is a batch of its own.
  const batch = headerLine("Nats-Batch-Id", nuid.next());
  const sequence = (place: number): string => batch + headerLine("Nats-Batch-Sequence", place);
  for (let index = 0; index < messages.length - 1; index++) {
    const message = messages[index];
    if (message === undefined) continue;
    const headers = new RenderedHeaders(message.headerLines + sequence(index + 1));
    connection.nats.publish(message.subject, message.data, { headers });
  }
  const closing = sequence(messages.length) + headerLine("Nats-Batch-Commit", 1);
  const headers = new RenderedHeaders(last.headerLines + closing);
  return connection.requests.one(last.subject, last.data, { headers, timeoutMs });
}

function readAnswer(answer: Msg, prepared: PreparedCommit): AttemptReply {
  const acknowledgement = parseAcknowledgement(answer);
  if (acknowledgement === undefined) return { kind: "lost", cause: "an answer that says nothing" };
  if (acknowledgement.error !== undefined) return readError(acknowledgement.error);
  if (acknowledgement.seq === undefined) return { kind: "lost", cause: "an answer that says nothing" };
  const { messages, carriers } = prepared;
  const { seq } = acknowledgement;
  if (messages.length === 1) return { kind: "stored", revisions: [seq] };
  if (acknowledgement.duplicate === true) return { kind: "landed-earlier" };
  // Revisions of a batch follow one another; its last message has the one that was answered.
  const first = seq - messages.length + 1;
  const revisions: number[] = [];
  for (let index = carriers; index < messages.length; index++) revisions.push(first + index);
  return { kind: "stored", revisions };
}

/** A refusal is passed on with the revision it names; whether that proves anything is for the resolution to say. */
function readError(error: ServerError): AttemptReply {
  switch (error.err_code) {
    case serverCode.wrongLastSequence: {
      const revision = revisionNamed(error);
      return revision === undefined ? { kind: "refused" } : { kind: "refused", revision };
    }
    case serverCode.wrongLastSequenceUnnamed:
      return { kind: "refused" };
    case serverCode.batchHoldsDuplicate:
      return { kind: "landed-earlier" };
    default:
      if (shapeCodes.has(error.err_code)) return { kind: "unacceptable", cause: error.description };
      // No space, no quorum, an incomplete batch, and whatever else: a deposed leader may say so of a commit that lands.
      return { kind: "lost", cause: error.description };
  }
}
