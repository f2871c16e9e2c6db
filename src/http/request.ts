import { z } from "zod";
import type { Position, CallContext } from "../authority/api.ts";
import { MandateError } from "../core/errors.ts";
import type { Subject } from "../core/subject.ts";
import { parseShape } from "../wire/parse.ts";
import { identifier, subject as subjectShape } from "../wire/shapes.ts";
import { invalidAt } from "./answer.ts";
import type { HttpContext } from "./context.ts";

const scopeShape = z.strictObject({ tenantId: identifier, applicationId: identifier });

const SUBJECT_HEADER = "X-Mandate-Subject";

/** Header values arrive as bytes; ours are UTF-8, and `%XX` stands for any byte that a header can't carry. */
function decodeHeader(name: string, value: string): string {
  try {
    // eslint-disable-next-line no-control-regex -- the bytes beyond ASCII are what it is about
    if (!/[%\u0080-\uffff]/.test(value)) return value;
    const bytes = Buffer.from(value, "latin1");
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return decodeURIComponent(text);
  } catch {
    throw invalidAt(name, "is not UTF-8 with other bytes written as %XX");
  }
}

/**
 * `kind:id` as a subject; everything after the first colon is the id.
 *
 * @throws MandateError `WORKLOAD_INVALID` naming `name`.
 */
export function parseSubject(name: string, text: string): Subject {
  const colon = text.indexOf(":");
  if (colon < 0) throw invalidAt(name, "is not kind:id");
  const parsed = parseShape(subjectShape, { kind: text.slice(0, colon), id: text.slice(colon + 1) });
  if (!parsed.ok) throw invalidAt(name, `is not kind:id: ${parsed.error.message}`);
  return parsed.value;
}

/** A name with a dot that is no address: one that the world's name servers could point at this machine. */
const publicName = /^[^[\]:]*\.[^[\]:]*[a-z][^[\]:]*(?::\d+)?$/i;
const localName = /\.localhost(?::\d+)?$/i;

/**
 * Who asks, in open mode (contract 6.2): whoever the request says. Asked by a public name, it is believed nobody: a page
 * from elsewhere, in a browser on this machine, could make such a name its own and so speak for its user.
 *
 * @throws MandateError `SUBJECT_REQUIRED`; `WORKLOAD_INVALID` when it is no subject; `WORKLOAD_UNAUTHORIZED`.
 */
export function readSubject(context: HttpContext): Subject {
  const host = context.req.header("host");
  if (host !== undefined && publicName.test(host) && !localName.test(host))
    throw new MandateError("WORKLOAD_UNAUTHORIZED", "a node in open mode is asked by its address or as localhost", {
      details: { paths: ["Host"] },
    });
  const header = context.req.header(SUBJECT_HEADER);
  if (header === undefined || header === "")
    throw new MandateError("SUBJECT_REQUIRED", `the request has no ${SUBJECT_HEADER}: kind:id`);
  return parseSubject(SUBJECT_HEADER, decodeHeader(SUBJECT_HEADER, header));
}

/**
 * The workload that the path names: its third part, unescaped.
 *
 * @throws MandateError `WORKLOAD_INVALID` when an escape is broken.
 */
export function readPathId(context: HttpContext): string {
  const { url } = context.req;
  const path = url.slice(url.indexOf("/", url.indexOf("://") + 3));
  const part = path.split(/[?#]/, 1)[0]?.split("/")[3] ?? "";
  try {
    return decodeURIComponent(part);
  } catch {
    throw invalidAt("workloadId", "has a broken escape in the path");
  }
}

/** The requestId that a request carries in its header. */
export function readRequestId(context: HttpContext): string | undefined {
  const header = context.req.header("Mandate-Request-Id");
  if (header === undefined) return undefined;
  const parsed = parseShape(identifier, decodeHeader("Mandate-Request-Id", header));
  if (!parsed.ok) throw invalidAt("Mandate-Request-Id", parsed.error.message);
  return parsed.value;
}

/** A position as the headers `Mandate-Revision` and `Mandate-Min-Revision` have it. */
export const renderPosition = (position: Position, shards: number): string =>
  shards === 1 ? String(position.revision) : `${position.shard}-${position.revision}`;

/** Positions of all shards as one header. */
export const renderPositions = (revisions: readonly number[]): string =>
  revisions.map((revision, shard) => renderPosition({ shard, revision }, revisions.length)).join(",");

/**
 * Undoes {@link renderPosition} and {@link renderPositions}.
 *
 * @throws MandateError `WORKLOAD_INVALID` naming the header.
 */
export function readPositions(context: HttpContext, shards: number): readonly Position[] {
  const header = context.req.header("Mandate-Min-Revision");
  return header === undefined ? [] : header.split(",", shards + 1).map((part) => parsePosition(part.trim(), shards));
}

function parsePosition(text: string, shards: number): Position {
  const [, shard, revision] = /^(?:(\d{1,6})-)?(\d{1,15})$/.exec(text) ?? [];
  const position = { shard: Number(shard ?? 0), revision: Number(revision) };
  if (revision === undefined || (shard === undefined && shards > 1) || position.shard >= shards)
    throw invalidAt("Mandate-Min-Revision", "is not what a Mandate-Revision said");
  return position;
}

/**
 * The query's parameters by name, with all values of each.
 *
 * @throws MandateError `WORKLOAD_INVALID` when a name is not among `known`, or an escape is broken.
 */
export function readQuery(context: HttpContext, known: ReadonlySet<string>): ReadonlyMap<string, readonly string[]> {
  const query = new Map<string, string[]>();
  const { url } = context.req;
  const start = url.indexOf("?");
  if (start < 0) return query;
  for (const pair of url.slice(start + 1).split("&")) {
    if (pair === "") continue;
    const [name = "", ...rest] = pair.split("=");
    const key = decodePart(name);
    if (!known.has(key)) throw invalidAt(key, "is not a parameter of this request");
    const values = query.get(key);
    const value = decodePart(rest.join("="));
    if (values === undefined) query.set(key, [value]);
    else values.push(value);
  }
  return query;
}

function decodePart(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw invalidAt("query", `has a broken escape in ${text.slice(0, 100)}`);
  }
}

/** The one value of a parameter. */
export function single(query: ReadonlyMap<string, readonly string[]>, name: string): string | undefined {
  const values = query.get(name);
  if (values !== undefined && values.length > 1) throw invalidAt(name, "is given more than once");
  return values?.[0];
}

/** A whole number in a query; what is none is handed on as it is, for the shape to refuse by name. */
export function singleNumber(query: ReadonlyMap<string, readonly string[]>, name: string): number | string | undefined {
  const text = single(query, name);
  return text !== undefined && /^(?:0|[1-9]\d{0,15})$/.test(text) ? Number(text) : text;
}

/** Tenant and application of a query as a scope: both or none. */
export function readScope(query: ReadonlyMap<string, readonly string[]>): CallContext["scope"] {
  const tenantId = single(query, "tenantId");
  const applicationId = single(query, "applicationId");
  if (tenantId === undefined && applicationId === undefined) return undefined;
  const parsed = parseShape(scopeShape, { tenantId, applicationId });
  if (!parsed.ok) throw MandateError.of(parsed.error);
  return parsed.value;
}
