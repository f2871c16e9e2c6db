import type { Msg } from "@nats-io/nats-core";
import { StoreUnavailable } from "../store.ts";
import type { ServerError } from "./server-codes.ts";

/** What the stream answers to a publish. */
export interface Acknowledgement {
  /** The revision that was given, the last one of a batch. */
  readonly seq?: number;
  /** How many messages of a batch were stored. */
  readonly count?: number;
  /** The message id was known: `seq` is the revision of the earlier message. */
  readonly duplicate?: boolean;
  readonly error?: ServerError;
}

/** Reads an answer; one that is no acknowledgement at all is as good as none. */
export function parseAcknowledgement(answer: Msg): Acknowledgement | undefined {
  try {
    const parsed: unknown = answer.json();
    return typeof parsed === "object" && parsed !== null ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The revision that an unguarded write got.
 *
 * @throws StoreUnavailable when the server refused it.
 */
export function acknowledgedRevision(answer: Msg): number {
  const acknowledgement = parseAcknowledgement(answer);
  if (acknowledgement?.seq !== undefined && acknowledgement.error === undefined) return acknowledgement.seq;
  throw new StoreUnavailable(`the write was refused: ${acknowledgement?.error?.description ?? "no acknowledgement"}`);
}

/** The revision that a refusal names as the one in the way; the server says it in its text alone. */
export function revisionNamed(error: ServerError): number | undefined {
  const digits = /(\d+)$/.exec(error.description)?.[1];
  return digits === undefined ? undefined : Number(digits);
}
