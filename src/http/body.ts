import type { IncomingMessage } from "node:http";
import { MandateError } from "../core/errors.ts";
import { parseJsonBytes } from "../wire/json-text.ts";
import { BODY_BYTES_MAX } from "../wire/limits.ts";
import { invalidAt } from "./answer.ts";
import type { HttpContext } from "./context.ts";

const tooLarge = (): MandateError =>
  new MandateError("WORKLOAD_TOO_LARGE", `the body has more than ${BODY_BYTES_MAX} bytes`, {
    details: { bytesMax: BODY_BYTES_MAX },
  });

/** Reads a node's own stream: much cheaper than a web stream around it. */
function readIncoming(incoming: IncomingMessage): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const finish = (settle: () => void): void => {
      incoming.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose);
      settle();
    };
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) {
        incoming.pause();
        finish(() => reject(tooLarge()));
      } else chunks.push(chunk);
    };
    const onEnd = (): void =>
      finish(() => {
        const [first] = chunks;
        resolve(first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks));
      });
    const onClose = (): void => finish(() => reject(invalidAt("", "the body ended early")));
    if (incoming.readableEnded || incoming.destroyed) {
      reject(invalidAt("", "the body ended early"));
      return;
    }
    incoming.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
  });
}

async function readStream(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks);
    bytes += value.length;
    if (bytes > BODY_BYTES_MAX) {
      await reader.cancel();
      throw tooLarge();
    }
    chunks.push(value);
  }
}

/** Whether a content type is JSON in UTF-8. */
function isJsonType(contentType: string): boolean {
  if (contentType === "application/json") return true;
  const [type, ...parameters] = contentType
    .toLowerCase()
    .split(";")
    .map((part) => part.trim());
  return (
    type === "application/json" &&
    parameters.every((parameter) => !parameter.startsWith("charset=") || /^charset="?utf-8"?$/.test(parameter))
  );
}

/**
 * Reads a request's body as JSON; `undefined` when there is none. A body that says it is larger than the bound is
 * refused unread, one that turns out to be is cut off (contract 6.2).
 *
 * @throws MandateError `WORKLOAD_TOO_LARGE`; `WORKLOAD_INVALID` naming the place.
 */
export async function readJsonBody(context: HttpContext): Promise<unknown> {
  const declared = context.req.header("content-length");
  if (declared !== undefined && Number(declared) > BODY_BYTES_MAX) throw tooLarge();
  if (context.req.header("content-encoding") !== undefined)
    throw invalidAt("Content-Encoding", "is not taken: send the body as it is");
  const incoming = context.env?.incoming;
  let bytes: Uint8Array;
  if (incoming !== undefined) bytes = await readIncoming(incoming);
  else {
    const { body } = context.req.raw;
    bytes = body === null ? new Uint8Array() : await readStream(body);
  }
  if (bytes.length === 0) return undefined;
  const contentType = context.req.header("content-type");
  if (contentType === undefined || !isJsonType(contentType)) throw invalidAt("Content-Type", "is not application/json");
  const parsed = parseJsonBytes(bytes);
  if (!parsed.ok) throw MandateError.of(parsed.error);
  return parsed.value;
}
