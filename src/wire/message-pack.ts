import { isUtf8 } from "node:buffer";
import { JSON_DEPTH_MAX } from "../base/json.ts";
import { err, ok, type Result } from "../base/result.ts";
import { refuse, type Refusal } from "../core/errors.ts";

/**
 * Messages in msgpack that come from anywhere (contract 6.3). They carry JSON values and nothing else: binary, dates,
 * references, records and other extensions are refused, so that a message means the same in both notations and no
 * reader's extension can be reached from outside. A repeated member counts with its last value, as in JSON.
 */
export function parseMessagePack(bytes: Uint8Array): Result<unknown, Refusal> {
  const reader = new Reader(bytes);
  try {
    return ok(reader.whole());
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    const message = `the body is not the msgpack of a JSON value: ${fault.rule} at byte ${fault.offset}`;
    return err(
      refuse("WORKLOAD_INVALID", message, { paths: [""], issues: [{ path: "", message }], offset: fault.offset }),
    );
  }
}

class Fault extends Error {
  override readonly name = "Fault";
  readonly rule: string;
  readonly offset: number;

  constructor(rule: string, offset: number) {
    super(rule);
    this.rule = rule;
    this.offset = offset;
  }
}

class Reader {
  readonly #buffer: Buffer;
  #offset = 0;
  #depth = 0;

  constructor(bytes: Uint8Array) {
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  whole(): unknown {
    const value = this.#value();
    if (this.#offset < this.#buffer.length) throw this.#fault("something follows the value");
    return value;
  }

  #fault(rule: string): Fault {
    return new Fault(rule, this.#offset);
  }

  /** Moves past `length` bytes and answers where they begin. */
  #take(length: number): number {
    const from = this.#offset;
    if (length > this.#buffer.length - from) throw this.#fault("it ends early");
    this.#offset = from + length;
    return from;
  }

  #value(): unknown {
    const type = this.#buffer[this.#take(1)] ?? 0xc1;
    if (type < 0x80) return type;
    if (type < 0x90) return this.#map(type & 0x0f);
    if (type < 0xa0) return this.#array(type & 0x0f);
    if (type < 0xc0) return this.#text(type & 0x1f);
    if (type >= 0xe0) return type - 0x100;
    return this.#typed(type);
  }

  #typed(type: number): unknown {
    const buffer = this.#buffer;
    switch (type) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xca:
        return buffer.readFloatBE(this.#take(4));
      case 0xcb:
        return buffer.readDoubleBE(this.#take(8));
      case 0xcc:
        return buffer.readUInt8(this.#take(1));
      case 0xcd:
        return buffer.readUInt16BE(this.#take(2));
      case 0xce:
        return buffer.readUInt32BE(this.#take(4));
      case 0xcf:
        return this.#safe(buffer.readBigUInt64BE(this.#take(8)));
      case 0xd0:
        return buffer.readInt8(this.#take(1));
      case 0xd1:
        return buffer.readInt16BE(this.#take(2));
      case 0xd2:
        return buffer.readInt32BE(this.#take(4));
      case 0xd3:
        return this.#safe(buffer.readBigInt64BE(this.#take(8)));
      case 0xd4:
        return this.#absent();
      default:
        return this.#sized(type);
    }
  }

  #sized(type: number): unknown {
    const buffer = this.#buffer;
    switch (type) {
      case 0xd9:
        return this.#text(buffer.readUInt8(this.#take(1)));
      case 0xda:
        return this.#text(buffer.readUInt16BE(this.#take(2)));
      case 0xdb:
        return this.#text(buffer.readUInt32BE(this.#take(4)));
      case 0xdc:
        return this.#array(buffer.readUInt16BE(this.#take(2)));
      case 0xdd:
        return this.#array(buffer.readUInt32BE(this.#take(4)));
      case 0xde:
        return this.#map(buffer.readUInt16BE(this.#take(2)));
      case 0xdf:
        return this.#map(buffer.readUInt32BE(this.#take(4)));
      default:
        this.#offset -= 1;
        throw this.#fault("binary data or an extension stands");
    }
  }

  #safe(integer: bigint): number {
    const number = Number(integer);
    if (!Number.isSafeInteger(number)) throw this.#fault("an integer beyond ±(2^53 − 1) ends");
    return number;
  }

  /** JavaScript's `undefined`, as msgpackr writes it: a member that has it is absent, as in JSON. */
  #absent(): undefined {
    const from = this.#take(2);
    if (this.#buffer[from] === 0 && this.#buffer[from + 1] === 0) return undefined;
    this.#offset = from;
    throw this.#fault("an extension stands");
  }

  #text(length: number): string {
    const from = this.#take(length);
    const part = this.#buffer.subarray(from, this.#offset);
    if (!isUtf8(part)) throw this.#fault("a text that is not UTF-8 ends");
    return part.toString("utf8");
  }

  /** Each of `count` entries takes at least `size` bytes: a count beyond that is a lie, found before it costs anything. */
  #enter(count: number, size: number): void {
    if (count * size > this.#buffer.length - this.#offset) throw this.#fault("it ends early");
    if (this.#depth >= JSON_DEPTH_MAX) throw this.#fault(`nesting deeper than ${JSON_DEPTH_MAX} levels stands`);
    this.#depth += 1;
  }

  #array(count: number): unknown[] {
    this.#enter(count, 1);
    const items: unknown[] = [];
    for (let index = 0; index < count; index++) {
      const value = this.#value();
      if (value === undefined) throw this.#fault("an item without a value ends");
      items.push(value);
    }
    this.#depth -= 1;
    return items;
  }

  #map(count: number): object {
    this.#enter(count, 2);
    const map: Record<string, unknown> = {};
    for (let index = 0; index < count; index++) {
      const key = this.#value();
      if (typeof key !== "string") throw this.#fault("a key that is no text ends");
      const value = this.#value();
      if (value === undefined) continue;
      if (key === "__proto__")
        Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
      else map[key] = value;
    }
    this.#depth -= 1;
    return map;
  }
}
