import type { GrantResource } from "./grant.ts";

/**
 * URIs of resources: `flow://<applicationId>[/path]` (contract 4.1). They are compared part by part, decoded once, so
 * that `caf%C3%A9` and `café` are one name, and no encoding hides a separator.
 */

const SCHEME = "flow://";

// eslint-disable-next-line no-control-regex -- control characters are what it is about
const forbidden = /[\u0000-\u001f\u007f/\\?#*]|\.\.|%[0-9A-Fa-f]{2}/;

/** One part, decoded; `undefined` when it is empty, broken, or holds what must not be in one. */
function parsePart(part: string): string | undefined {
  if (part.includes("?") || part.includes("#")) return undefined;
  let text: string;
  try {
    text = decodeURIComponent(part);
  } catch {
    return undefined;
  }
  const bad = text === "" || text === "." || forbidden.test(text) || !text.isWellFormed();
  return bad ? undefined : text;
}

/** The decoded parts of a URI without wildcards, the application first; `undefined` when it is malformed (contract 4.1). */
export function parseResourceUri(uri: string): readonly string[] | undefined {
  if (!uri.startsWith(SCHEME)) return undefined;
  const parts: string[] = [];
  for (const part of uri.slice(SCHEME.length).split("/")) {
    const parsed = parsePart(part);
    if (parsed === undefined) return undefined;
    parts.push(parsed);
  }
  return parts;
}

/** An identifier as one part of a URI. */
const renderPart = (text: string): string => encodeURIComponent(text.toWellFormed()).replaceAll("*", "%2A");

/** The URI of something of an application. One whose parts no URI can carry is malformed, and so reached by no grant. */
export const renderResourceUri = (applicationId: string, ...path: readonly string[]): string =>
  `${SCHEME}${[applicationId, ...path].map(renderPart).join("/")}`;

/** What a resource of a grant stands for: its own URI, everything below it, or both. */
export interface Region {
  readonly parts: readonly string[];
  readonly itself: boolean;
  readonly below: boolean;
}

function regionOf(uri: string, what: { readonly itself: boolean; readonly below: boolean }): Region | undefined {
  const parts = parseResourceUri(uri);
  return parts === undefined ? undefined : { parts, ...what };
}

/** Reads a resource of a grant; `undefined` when its URI is malformed for its kind (contract 4.1). */
export function parseResource({ kind, uri }: GrantResource): Region | undefined {
  switch (kind) {
    case "APPLICATION":
      return regionOf(uri, { itself: true, below: true });
    case "RESOURCE_PREFIX":
      if (uri.endsWith("/*")) return regionOf(uri.slice(0, -2), { itself: false, below: true });
      return regionOf(uri.endsWith("*") ? uri.slice(0, -1) : uri, { itself: true, below: true });
    case "COLLECTION":
    case "RESOURCE":
    case "WORKLOAD":
    case "CONNECTION":
    case "ARTIFACT":
      return uri.endsWith("/*")
        ? regionOf(uri.slice(0, -2), { itself: false, below: true })
        : regionOf(uri, { itself: true, below: false });
  }
}

const beginsWith = (parts: readonly string[], beginning: readonly string[]): boolean =>
  beginning.length <= parts.length && beginning.every((part, index) => part === parts[index]);

/** Whether a region holds a URI, given by its parts. */
export const covers = (region: Region, parts: readonly string[]): boolean =>
  beginsWith(parts, region.parts) && (parts.length === region.parts.length ? region.itself : region.below);

/** Whether everything in one region is in another. */
export const isInside = (inner: Region, outer: Region): boolean =>
  (!inner.itself || covers(outer, inner.parts)) &&
  (!inner.below || (outer.below && beginsWith(inner.parts, outer.parts)));
