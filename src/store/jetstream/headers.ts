import type { Msg } from "@nats-io/nats-core";
import { MsgHdrsImpl, MsgImpl } from "@nats-io/nats-core/internal";

/**
 * The header block of a stored message: what JetStream reads (`Nats-…`), the ring of operation ids, and provenance.
 *
 * Provenance is the committer's text, which may be anything at all, while a header value is one line of printable
 * characters without blanks at its ends. So names and values are escaped, injectively: `%XX` for an ASCII character that
 * has no place there, `%uXXXX` for any other UTF-16 code unit. What went in comes out, lone surrogates included.
 */
const PROVENANCE_PREFIX = "Mandate-";
const OPERATIONS_NAME = "Operations";
export const OPERATIONS_HEADER = `${PROVENANCE_PREFIX}${OPERATIONS_NAME}`;

/** The server keeps a header block's length in sixteen bits. */
export const HEADER_BYTES_MAX = 65_535;

const OPENING = "NATS/1.0\r\n";
const CLOSING = "\r\n";

const plainValue = /^[!-$&-~]*$/;
const plainName = /^[A-Za-z0-9_-]+$/;

function escapeUnits(text: string, plain: RegExp): string {
  let escaped = "";
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    const character = text.charAt(index);
    if (character !== "%" && plain.test(character)) escaped += character;
    else if (unit < 0x80) escaped += `%${unit.toString(16).toUpperCase().padStart(2, "0")}`;
    else escaped += `%u${unit.toString(16).toUpperCase().padStart(4, "0")}`;
  }
  return escaped;
}

const escapeValue = (text: string): string => (plainValue.test(text) ? text : escapeUnits(text, plainValue));

/** A name that would meet the ring's header gets its first letter escaped, and no other name becomes that. */
function escapeName(name: string): string {
  const escaped = plainName.test(name) ? name : escapeUnits(name, plainName);
  return escaped === OPERATIONS_NAME ? `%4F${escaped.slice(1)}` : escaped;
}

const unescapeText = (text: string): string =>
  text.includes("%")
    ? text.replace(/%(?:u([0-9A-F]{4})|([0-9A-F]{2}))/g, (_, wide: string, narrow: string) =>
        String.fromCharCode(Number.parseInt(wide ?? narrow, 16)),
      )
    : text;

/** Lines of a header block that carry provenance. */
export function provenanceLines(provenance: Readonly<Record<string, string>> | undefined): string {
  if (provenance === undefined) return "";
  let lines = "";
  for (const name in provenance) {
    const value = provenance[name];
    if (value === undefined) continue;
    lines += `${PROVENANCE_PREFIX}${escapeName(name)}: ${escapeValue(value)}\r\n`;
  }
  return lines;
}

/** One line of a header block; the value must be printable ASCII. */
export const headerLine = (name: string, value: string | number): string => `${name}: ${value}\r\n`;

/** The bytes a block of these lines takes. Lines are ASCII. */
export const blockBytes = (lines: string): number => OPENING.length + lines.length + CLOSING.length;

/**
 * Headers that were rendered already. The client asks headers for nothing but their bytes when it publishes, and the
 * server wants them verbatim: going through a map of names on each message would cost more than the rest of a commit.
 */
export class RenderedHeaders extends MsgHdrsImpl {
  readonly #lines: string;

  constructor(lines: string) {
    super();
    this.#lines = lines;
  }

  override encode(): Uint8Array {
    return Buffer.from(OPENING + this.#lines + CLOSING, "latin1");
  }
}

/**
 * A header block as text. What this store wrote is ASCII; a block is searched for the few lines that matter instead of being taken
 * apart, since a follower reads hundreds of thousands of them.
 */
export function headerText(message: Msg): string {
  if (!(message instanceof MsgImpl)) return OPENING;
  const { _msg: place, _rdata: bytes } = message;
  return place.hdr > 0 ? latin1(bytes.subarray(0, place.hdr)) : OPENING;
}

/** Bytes as text, one character each. */
export const latin1 = ({ buffer, byteOffset, length }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, length).toString("latin1");

/** The value of the last line of that name; empty when there is none. */
export function headerValue(text: string, name: string): string {
  const start = text.lastIndexOf(`\r\n${name}: `);
  if (start < 0) return "";
  const from = start + name.length + 4;
  return text.slice(from, text.indexOf("\r\n", from));
}

/** The ring of operation ids, oldest first. */
export function operationsIn(text: string): readonly string[] {
  const ring = headerValue(text, OPERATIONS_HEADER);
  return ring === "" ? [] : ring.split(",");
}

/** Provenance as it was committed. */
export function provenanceIn(text: string): Readonly<Record<string, string>> {
  const provenance: Record<string, string> = {};
  const opening = `\r\n${PROVENANCE_PREFIX}`;
  for (let start = text.indexOf(opening); start >= 0;) {
    const from = start + opening.length;
    const colon = text.indexOf(":", from);
    const end = text.indexOf("\r\n", from);
    const name = text.slice(from, colon);
    if (name !== OPERATIONS_NAME) {
      const value = unescapeText(text.slice(colon + 2, end));
      if (name === "__proto__") Object.defineProperty(provenance, name, { value, enumerable: true });
      else provenance[unescapeText(name)] = value;
    }
    start = text.indexOf(opening, end);
  }
  return provenance;
}

/** `true` for what the server or another tool left in a value's place to say that the key is gone. */
export const isMarker = (text: string): boolean =>
  text.includes("\r\nKV-Operation:") || text.includes("\r\nNats-Marker-Reason:");
