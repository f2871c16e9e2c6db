import type { Msg } from "@nats-io/nats-core";
import type { Entry } from "../store.ts";
import { headerText, headerValue, isMarker, latin1, operationsIn, provenanceIn } from "./headers.ts";

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
  const text = latin1(Buffer.from(message.hdrs ?? "", "base64"));
  if (isMarker(text)) return undefined;
  return {
    key: message.subject.slice(prefixLength),
    value: plainBytes(Buffer.from(message.data ?? "", "base64")),
    revision: message.seq,
    operations: operationsIn(text),
    at: Date.parse(message.time),
    provenance: provenanceIn(text),
  };
}

/** One message of a direct get, with the place it stood at. */
export interface DirectMessage {
  readonly key: string;
  readonly revision: number;
  /** `undefined`: the key is gone. */
  readonly entry: Entry | undefined;
}

/** Reads an answer to a direct get: the stored message, and lines of the server's own after its headers. */
export function directMessage(message: Msg, prefixLength: number): DirectMessage {
  const text = headerText(message);
  const key = headerValue(text, "Nats-Subject").slice(prefixLength);
  const revision = Number(headerValue(text, "Nats-Sequence"));
  if (isMarker(text)) return { key, revision, entry: undefined };
  const at = Date.parse(headerValue(text, "Nats-Time-Stamp"));
  const [operations, provenance] = [operationsIn(text), provenanceIn(text)];
  return { key, revision, entry: { key, value: plainBytes(message.data), revision, operations, at, provenance } };
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
  #text: string | undefined;
  #provenance: Readonly<Record<string, string>> | undefined;

  constructor(message: Msg, place: { readonly key: string; readonly revision: number; readonly at: number }) {
    this.key = place.key;
    this.value = plainBytes(message.data);
    this.revision = place.revision;
    this.at = place.at;
    this.#message = message;
    Object.defineProperties(this, DeliveredEntry.#onDemand);
  }

  #headers(): string {
    this.#text ??= headerText(this.#message);
    return this.#text;
  }

  static readonly #onDemand: PropertyDescriptorMap & ThisType<DeliveredEntry> = {
    operations: {
      enumerable: true,
      get(): readonly string[] {
        return operationsIn(this.#headers());
      },
    },
    provenance: {
      enumerable: true,
      get(): Readonly<Record<string, string>> {
        this.#provenance ??= provenanceIn(this.#headers());
        return this.#provenance;
      },
    },
  };
}
