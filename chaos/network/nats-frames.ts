/** One unit of the NATS client protocol, cut out of the stream whole. */
export interface NatsFrame {
  /** As it travels, with its line ends. */
  readonly bytes: Buffer;
  /** `MSG`, `HMSG`, `PUB`, `HPUB`, `PING` … */
  readonly operation: string;
  /** Empty for what is no message. */
  readonly subject: string;
  readonly reply: string;
  /** Where its headers (if any) and its payload begin and end within `bytes`. */
  readonly headersFrom: number;
  readonly payloadFrom: number;
  readonly payloadTo: number;
}

const LINE_END = Buffer.from("\r\n");

/** Places of a message's arguments: `MSG subject sid [reply] [headers] size`, `PUB subject [reply] [headers] size`. */
function readArguments(
  operation: string,
  parts: readonly string[],
): { reply: string; headerBytes: number; bytes: number } {
  const headed = operation.startsWith("H");
  const fixed = operation.endsWith("MSG") ? 2 : 1;
  const sizes = headed ? 2 : 1;
  const bytes = Number(parts.at(-1));
  return {
    reply: parts.length > fixed + sizes ? (parts[fixed] ?? "") : "",
    headerBytes: headed ? Number(parts.at(-2)) : 0,
    bytes,
  };
}

/** Cuts a byte stream of the NATS client protocol into frames. One for each direction of a connection. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  /** The frames that these bytes complete, in order. */
  push(chunk: Buffer): NatsFrame[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const frames: NatsFrame[] = [];
    for (;;) {
      const frame = this.#next();
      if (frame === undefined) return frames;
      frames.push(frame);
      this.#rest = this.#rest.subarray(frame.bytes.length);
    }
  }

  #next(): NatsFrame | undefined {
    const lineEnd = this.#rest.indexOf(LINE_END);
    if (lineEnd < 0) return undefined;
    const line = this.#rest.toString("latin1", 0, lineEnd);
    const [operation = "", ...parts] = line.split(/[ \t]+/).filter((part) => part !== "");
    const from = lineEnd + LINE_END.length;
    const name = operation.toUpperCase();
    if (name !== "MSG" && name !== "HMSG" && name !== "PUB" && name !== "HPUB") {
      const place = { headersFrom: from, payloadFrom: from, payloadTo: from };
      return { bytes: this.#rest.subarray(0, from), operation: name, subject: "", reply: "", ...place };
    }
    const { reply, headerBytes, bytes } = readArguments(name, parts);
    const payloadTo = from + bytes;
    if (this.#rest.length < payloadTo + LINE_END.length) return undefined;
    return {
      bytes: this.#rest.subarray(0, payloadTo + LINE_END.length),
      operation: name,
      subject: parts[0] ?? "",
      reply,
      headersFrom: from,
      payloadFrom: from + headerBytes,
      payloadTo,
    };
  }
}

/** The value of a header line of a frame; `undefined` when there is none of that name. */
export function frameHeader(frame: NatsFrame, name: string): string | undefined {
  const text = frame.bytes.toString("latin1", frame.headersFrom, frame.payloadFrom);
  const start = text.toLowerCase().indexOf(`\r\n${name.toLowerCase()}:`);
  if (start < 0) return undefined;
  const from = start + name.length + 3;
  return text.slice(from, text.indexOf("\r\n", from)).trim();
}

/** The status of a frame that the server made itself, such as 503 for a request that nobody listens to. */
export function frameStatus(frame: NatsFrame): number | undefined {
  const text = frame.bytes.toString("latin1", frame.headersFrom, Math.min(frame.payloadFrom, frame.headersFrom + 16));
  const status = /^NATS\/1\.0 (\d{3})/.exec(text)?.[1];
  return status === undefined ? undefined : Number(status);
}

export const isMessage = ({ operation }: NatsFrame): boolean =>
  operation === "MSG" || operation === "HMSG" || operation === "PUB" || operation === "HPUB";
