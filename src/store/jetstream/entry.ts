import type { Msg } from "@nats-io/nats-core";
import type { Entry } from "../store.ts";
import { decodeHeaders, isMarker, operationsOf, provenanceOf } from "./headers.ts";

/** A message as `STREAM.MSG.GET` answers it. */
export interface StoredMessage {
  readonly subject: string;
  readonly seq: number;
  readonly time: string;
  /** Base64. */
  readonly data?: string;
  /** Base64. */
  readonly hdrs?: string;
}

/** A plain array over the same memory: a value is the same kind of thing whichever way it came. */
const plainBytes = ({ buffer, byteOffset, length }: Uint8Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, length);

/** The entry of a stored message; `undefined` when it says that the key is gone. */
export function entryOfStored(message: StoredMessage, prefixLength: number): Entry | undefined {
  const headers = message.hdrs === undefined ? undefined : decodeHeaders(Buffer.from(message.hdrs, "base64"));
  if (isMarker(headers)) return undefined;
  return {
    key: message.subject.slice(prefixLength),
    value: plainBytes(Buffer.from(message.data ?? "", "base64")),
    revision: message.seq,
    operations: operationsOf(headers),
    at: Date.parse(message.time),
    provenance: provenanceOf(headers),
  };
}

/** One message of a direct get, with the place it stood at. */
export interface DirectMessage {
  readonly key: string;
  readonly revision: number;
  /** `undefined`: the key is gone. */
  readonly entry: Entry | undefined;
}

/** Reads an answer to a direct get. */
export function directMessage(message: Msg, prefixLength: number): DirectMessage | undefined {
  const headers = message.headers;
  if (headers === undefined) return undefined;
  const key = headers.last("Nats-Subject").slice(prefixLength);
  const revision = Number(headers.last("Nats-Sequence"));
  if (isMarker(headers)) return { key, revision, entry: undefined };
  return {
    key,
    revision,
    entry: {
      key,
      value: plainBytes(message.data),
      revision,
      operations: operationsOf(headers),
      at: Date.parse(headers.last("Nats-Time-Stamp")),
      provenance: provenanceOf(headers),
    },
  };
}

/**
 * An entry on its way to a follower. A follower is handed hundreds of thousands of these and looks at the headers of
 * few, so they are read when they are asked for; they are own properties all the same, as those of any entry.
 */
export class DeliveredEntry implements Entry {
  readonly key: string;
  readonly value: Uint8Array;
  readonly revision: number;
  readonly at: number;
  declare readonly operations: readonly string[];
  declare readonly provenance: Readonly<Record<string, string>>;
  readonly #message: Msg;

  constructor(message: Msg, place: { readonly key: string; readonly revision: number; readonly at: number }) {
    this.key = place.key;
    this.value = plainBytes(message.data);
    this.revision = place.revision;
    this.at = place.at;
    this.#message = message;
    Object.defineProperties(this, DeliveredEntry.#onDemand);
  }

  static readonly #onDemand: PropertyDescriptorMap & ThisType<DeliveredEntry> = {
    operations: {
      enumerable: true,
      get(): readonly string[] {
        return operationsOf(this.#message.headers);
      },
    },
    provenance: {
      enumerable: true,
      get(): Readonly<Record<string, string>> {
        return provenanceOf(this.#message.headers);
      },
    },
  };
}
