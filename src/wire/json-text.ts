import { isUtf8 } from "node:buffer";
import { JSON_DEPTH_MAX } from "../base/json.ts";
import { err, ok, type Result } from "../base/result.ts";
import { refuse, type Refusal } from "../core/errors.ts";

/**
 * JSON as bytes. What the grammar of RFC 8259 allows is read, a repeated member counts with its last value; values that
 * can't be carried exactly are refused later, by the shapes. Anything else is refused here, and the place is named.
 */
export function parseJsonBytes(bytes: Uint8Array): Result<unknown, Refusal> {
  if (!isUtf8(bytes)) return err(refuse("WORKLOAD_INVALID", "the body is not UTF-8", { paths: [""], issues: [] }));
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  const deepAt = bytes.length > DEPTH_SCAN_FROM_BYTES ? findDeepNesting(text) : undefined;
  if (deepAt !== undefined) {
    const message = `the body nests deeper than ${DEPTH_MAX} levels`;
    return err(
      refuse("WORKLOAD_INVALID", message, { paths: [""], issues: [{ path: "", message }], ...placeAt(text, deepAt) }),
    );
  }
  try {
    return ok(JSON.parse(text) as unknown);
  } catch {
    const place = placeAt(text, findJsonFault(text) ?? text.length);
    const message = `the body is not JSON: line ${place.line}, column ${place.column}`;
    return err(refuse("WORKLOAD_INVALID", message, { paths: [""], issues: [{ path: "", message }], ...place }));
  }
}

/** Bodies from this size on are looked over before they are parsed: millions of brackets would hold up everything else. */
const DEPTH_SCAN_FROM_BYTES = 65_536;
/** Deeper than any request can be: a payload's depth, and the request around it. */
const DEPTH_MAX = JSON_DEPTH_MAX + 16;

/** Where a text begins to nest deeper than {@link DEPTH_MAX}, if it does. */
function findDeepNesting(text: string): number | undefined {
  let depth = 0;
  for (let offset = 0; offset < text.length; offset++) {
    const unit = text.charCodeAt(offset);
    if (unit === 0x22) {
      offset = closingQuote(text, offset);
      if (offset < 0) return undefined;
    } else if (unit === 0x5b || unit === 0x7b) {
      if (++depth > DEPTH_MAX) return offset;
    } else if (unit === 0x5d || unit === 0x7d) depth--;
  }
  return undefined;
}

/** Where the string that begins at an offset ends; -1 when it does not. */
function closingQuote(text: string, from: number): number {
  let end = from;
  do {
    end = text.indexOf('"', end + 1);
    if (end < 0) return -1;
  } while (isEscaped(text, end));
  return end;
}

/** Whether an odd number of backslashes stands before an offset. */
function isEscaped(text: string, offset: number): boolean {
  let first = offset;
  while (text.charCodeAt(first - 1) === 0x5c) first--;
  return (offset - first) % 2 === 1;
}

/** Where in a text an offset stands: all counted in UTF-16 units, lines and columns from 1. */
function placeAt(
  text: string,
  offset: number,
): { readonly offset: number; readonly line: number; readonly column: number } {
  let line = 1;
  let lineStart = 0;
  for (let index = text.indexOf("\n"); index >= 0 && index < offset; index = text.indexOf("\n", index + 1)) {
    line += 1;
    lineStart = index + 1;
  }
  return { offset, line, column: offset - lineStart + 1 };
}

const isSpace = (character: string): boolean =>
  character === " " || character === "\n" || character === "\r" || character === "\t";
const isDigit = (character: string): boolean => character >= "0" && character <= "9";

/** Reads tokens of JSON; each reader moves on past what is right and answers whether all of it was. */
class Scanner {
  readonly #text: string;
  offset = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The character at the offset; empty at the end. */
  get character(): string {
    return this.#text.charAt(this.offset);
  }

  skipSpace(): void {
    while (isSpace(this.character)) this.offset += 1;
  }

  /** One given character. */
  take(character: string): boolean {
    if (this.character !== character) return false;
    this.offset += 1;
    return true;
  }

  string(): boolean {
    if (!this.take('"')) return false;
    for (;;) {
      const character = this.character;
      if (character === "" || character < " ") return false;
      this.offset += 1;
      if (character === '"') return true;
      if (character === "\\" && !this.#escape()) return false;
    }
  }

  /** `true`, `false`, `null` or a number. */
  scalar(): boolean {
    for (const word of ["true", "false", "null"]) {
      if (this.character !== word.charAt(0)) continue;
      return word.split("").every((character) => this.take(character));
    }
    this.take("-");
    if (!this.take("0") && !this.#digits()) return false;
    if (this.take(".") && !this.#digits()) return false;
    if (!this.take("e") && !this.take("E")) return true;
    if (!this.take("+")) this.take("-");
    return this.#digits();
  }

  #digits(): boolean {
    const from = this.offset;
    while (isDigit(this.character)) this.offset += 1;
    return this.offset > from;
  }

  #escape(): boolean {
    if (this.take("u")) {
      for (let count = 0; count < 4; count++) {
        if (!/^[0-9a-fA-F]$/.test(this.character)) return false;
        this.offset += 1;
      }
      return true;
    }
    if (!/^["\\/bfnrt]$/.test(this.character)) return false;
    this.offset += 1;
    return true;
  }
}

/** Where a text stops being JSON; `undefined` when it is JSON. Needs no more stack for deeper nesting. */
export function findJsonFault(text: string): number | undefined {
  const scanner = new Scanner(text);
  const open: ("}" | "]")[] = [];
  const member = (): boolean => {
    scanner.skipSpace();
    if (!scanner.string()) return false;
    scanner.skipSpace();
    return scanner.take(":");
  };
  for (;;) {
    scanner.skipSpace();
    if (scanner.take("{")) {
      scanner.skipSpace();
      if (!scanner.take("}")) {
        open.push("}");
        if (!member()) return scanner.offset;
        continue;
      }
    } else if (scanner.take("[")) {
      scanner.skipSpace();
      if (!scanner.take("]")) {
        open.push("]");
        continue;
      }
    } else if (scanner.character === '"' ? !scanner.string() : !scanner.scalar()) return scanner.offset;
    // A value has ended: containers may end with it, then a comma, or the text.
    for (;;) {
      scanner.skipSpace();
      const closing = open.at(-1);
      if (closing === undefined) return scanner.character === "" ? undefined : scanner.offset;
      if (scanner.take(closing)) {
        open.pop();
        continue;
      }
      if (!scanner.take(",")) return scanner.offset;
      if (closing === "}" && !member()) return scanner.offset;
      break;
    }
  }
}
