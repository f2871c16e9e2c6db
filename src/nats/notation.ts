import type { MsgHdrs } from "@nats-io/nats-core";
import { utf8 } from "../base/bytes.ts";
import { err, type Result } from "../base/result.ts";
import { refuse, type Refusal } from "../core/errors.ts";
import { packValue } from "../wire/codec.ts";
import { parseJsonBytes } from "../wire/json-text.ts";
import { parseMessagePack } from "../wire/message-pack.ts";

/** How a message writes its value; the answer is written the same way (contract 6.3). */
export interface Notation {
  /** For the answer's header; JSON needs none. */
  readonly contentType?: string;
  parse(bytes: Uint8Array): Result<unknown, Refusal>;
  render(value: unknown): Uint8Array;
}

const CONTENT_TYPE = "Content-Type";

const json: Notation = {
  parse: (bytes) => parseJsonBytes(bytes),
  render: (value) => utf8(JSON.stringify(value)),
};

const messagePack: Notation = {
  contentType: "application/msgpack",
  parse: (bytes) => parseMessagePack(bytes),
  render: (value) => packValue(value),
};

/** For a type that is neither: refused, in JSON. */
const unknownNotation: Notation = {
  parse: () =>
    err(
      refuse("WORKLOAD_INVALID", "Content-Type is neither application/json nor application/msgpack", {
        paths: [CONTENT_TYPE],
        issues: [{ path: CONTENT_TYPE, message: "is neither application/json nor application/msgpack" }],
      }),
    ),
  render: (value) => json.render(value),
};

/** The notation that a message's headers name; JSON when they name none. */
export function notationOf(headers: MsgHdrs | undefined): Notation {
  if (headers === undefined) return json;
  const name = headers.keys().find((key) => key.toLowerCase() === "content-type");
  const [type = ""] = (name === undefined ? "" : headers.get(name)).split(";", 1);
  switch (type.trim().toLowerCase()) {
    case "":
    case "application/json":
      return json;
    case "application/msgpack":
    case "application/x-msgpack":
      return messagePack;
    default:
      return unknownNotation;
  }
}
