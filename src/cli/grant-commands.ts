import type { Result } from "../base/result.ts";
import { MandateError, type Refusal } from "../core/errors.ts";
import { isCapability } from "../core/grant/capabilities.ts";
import type { Grant, GrantResource, ResourceKind } from "../core/grant/grant.ts";
import type { RevocationTarget } from "../core/grant/revocation.ts";
import { delegateGrant, issueGrant, makeGrantId } from "../grants/sign-token.ts";
import { readTokenUnverified, verifyToken, type SignedGrant } from "../grants/verify-token.ts";
import { connect } from "../sdk/client.ts";
import { UsageError } from "./arguments.ts";
import {
  parseConstraints,
  parseLength,
  parseSubjectText,
  readCommandLine,
  readToken,
  type CommandLine,
  type Terminal,
} from "./grant-arguments.ts";
import { readPrivateKey, readPublicKeys, writeSecret } from "./key-commands.ts";

/** How long a grant lasts when nothing is said, ms. */
const LENGTH_MS = 3_600_000;

const accept = <Value>(result: Result<Value, Refusal>): Value => {
  if (result.ok) return result.value;
  throw new UsageError(`${result.error.code}: ${result.error.message}`);
};

/** Capabilities of a flag that may come again, and may hold several. A name that does not exist is most likely a typing error. */
function readCapabilities(line: CommandLine): readonly string[] {
  const names = line.list("capability").flatMap((text) => text.split(",").map((name) => name.trim()));
  const unknown = names.find((name) => !isCapability(name));
  if (unknown !== undefined) throw new UsageError(`there is no capability ${JSON.stringify(unknown)}`);
  return names;
}

/** `KIND=URI`; whether the kind exists and the URI is good is checked with the rest. */
const readResources = (line: CommandLine): readonly GrantResource[] =>
  line.list("resource").map((text) => {
    const [kind = "", ...uri] = text.split("=");
    if (uri.length === 0) throw new UsageError("--resource must be KIND=URI, such as APPLICATION=flow://shop");
    return { kind: kind as ResourceKind, uri: uri.join("=") };
  });

async function deliver(token: string, line: CommandLine, terminal: Terminal): Promise<number> {
  const path = line.text("out");
  if (path === undefined) terminal.write(`${token}\n`);
  else await writeSecret(path, `${token}\n`);
  return 0;
}

const noPositionals = (line: CommandLine): void => {
  if (line.positionals.length > 0) throw new UsageError(`${JSON.stringify(line.positionals[0])} belongs to no flag`);
};

function readRevision(line: CommandLine): number {
  const text = line.text("revision") ?? "1";
  if (!/^\d{1,15}$/.test(text)) throw new UsageError("--revision must be a whole number");
  return Number(text);
}

async function issue(terminal: Terminal): Promise<number> {
  const line = readCommandLine(terminal.args, {
    ...{ key: "text", issuer: "text", subject: "text", tenant: "text", application: "text", constraints: "text" },
    ...{ capability: "list", resource: "list", "expires-in": "text", id: "text", revision: "text", out: "text" },
  });
  noPositionals(line);
  const key = await readPrivateKey(line.required("key"));
  const capabilities = readCapabilities(line);
  const resources = readResources(line);
  if (capabilities.length === 0) throw new UsageError("--capability is missing");
  if (resources.length === 0) throw new UsageError("--resource is missing");
  const now = terminal.now();
  const length = line.text("expires-in");
  const grant: Grant = {
    contractVersion: 1,
    id: line.text("id") ?? makeGrantId(),
    issuer: parseSubjectText("issuer", line.required("issuer")),
    subject: parseSubjectText("subject", line.required("subject")),
    tenantId: line.required("tenant"),
    applicationId: line.required("application"),
    capabilities,
    resources,
    constraints: parseConstraints(line.text("constraints")),
    issuedAt: now,
    expiresAt: now + (length === undefined ? LENGTH_MS : parseLength("expires-in", length)),
    revision: readRevision(line),
    status: "ACTIVE",
  };
  return deliver(accept(await issueGrant(grant, key)), line, terminal);
}

/** A grant within its parent: whatever is not said is the parent's. */
function childOf(parent: Grant, line: CommandLine, now: number): Grant {
  const capabilities = readCapabilities(line);
  const resources = readResources(line);
  const length = line.text("expires-in");
  return {
    ...parent,
    id: line.text("id") ?? makeGrantId(),
    issuer: parent.subject,
    subject: parseSubjectText("subject", line.required("subject")),
    capabilities: capabilities.length === 0 ? parent.capabilities : capabilities,
    resources: resources.length === 0 ? parent.resources : resources,
    constraints: { ...parent.constraints, ...parseConstraints(line.text("constraints")) },
    issuedAt: Math.max(now, parent.issuedAt),
    expiresAt: length === undefined ? parent.expiresAt : now + parseLength("expires-in", length),
    parentGrant: parent.id,
    revision: readRevision(line),
  };
}

async function delegate(terminal: Terminal): Promise<number> {
  const line = readCommandLine(terminal.args, {
    ...{ key: "text", parent: "text", keys: "list", subject: "text", constraints: "text" },
    ...{ capability: "list", resource: "list", "expires-in": "text", id: "text", revision: "text", out: "text" },
  });
  noPositionals(line);
  const key = await readPrivateKey(line.required("key"));
  const parentToken = await readToken(line.text("parent"), terminal);
  const parent = accept(await readSigned(parentToken, line));
  const now = terminal.now();
  if (parent.grant.expiresAt <= now) throw new UsageError("the parent has expired");
  const grant = childOf(parent.grant, line, now);
  return deliver(accept(await delegateGrant(grant, { key, parent, parentToken })), line, terminal);
}

/** Reads a token; verified when the command line names keys. */
async function readSigned(token: string, line: CommandLine): Promise<Result<SignedGrant, Refusal>> {
  const paths = line.list("keys");
  if (paths.length === 0) return readTokenUnverified(token);
  const keys = await readPublicKeys(paths);
  return verifyToken(token, (kid) => keys.get(kid));
}

async function inspect(terminal: Terminal): Promise<number> {
  const line = readCommandLine(terminal.args, { keys: "list" });
  if (line.positionals.length > 1)
    throw new UsageError("mandate grant inspect takes one file, or - for standard input");
  const { grant, chain } = accept(await readSigned(await readToken(line.positionals[0], terminal), line));
  const at = (ms: number): string => new Date(Math.min(ms, 8.64e15)).toISOString();
  const signature = line.list("keys").length > 0 ? "verified" : "not checked: name the public keys with --keys";
  const now = terminal.now();
  const state = now >= grant.expiresAt ? "expired" : now < grant.issuedAt ? "not yet" : grant.status.toLowerCase();
  const shown = { signature, state, issued: at(grant.issuedAt), expires: at(grant.expiresAt), grant, chain };
  terminal.write(`${JSON.stringify(shown, null, 2)}\n`);
  return 0;
}

/** The one thing that is to be revoked. */
function readTarget(line: CommandLine): RevocationTarget {
  const grantId = line.text("grant");
  const subject = line.text("subject");
  const below = line.text("below-revision");
  const targets: RevocationTarget[] = [
    ...(grantId === undefined ? [] : [{ kind: "grant" as const, grantId }]),
    ...(subject === undefined ? [] : [{ kind: "subject" as const, subject: parseSubjectText("subject", subject) }]),
    ...(line.has("application") ? [{ kind: "application" as const }] : []),
    ...(line.has("tenant") ? [{ kind: "tenant" as const }] : []),
  ];
  const [target] = targets;
  if (target === undefined || targets.length > 1)
    throw new UsageError("name one of --grant, --subject, --application and --tenant");
  if (below === undefined) return target;
  if (target.kind !== "grant" || !/^[1-9]\d{0,14}$/.test(below))
    throw new UsageError("--below-revision is a whole number from 1, and belongs to --grant");
  return { ...target, belowRevision: Number(below) };
}

async function revoke(terminal: Terminal): Promise<number> {
  const line = readCommandLine(terminal.args, {
    ...{ url: "text", token: "text", grant: "text", subject: "text", "below-revision": "text", reason: "text" },
    ...{ application: "yes", tenant: "yes" },
  });
  noPositionals(line);
  const target = readTarget(line);
  const token = line.text("token") ?? (await readToken(undefined, terminal));
  const reason = line.text("reason");
  try {
    const client = connect({ url: line.text("url") ?? "http://127.0.0.1:7700", token });
    const revocation = await client.revoke({ target, ...(reason === undefined ? {} : { reason }) });
    terminal.write(`${JSON.stringify(revocation, null, 2)}\n`);
    return 0;
  } catch (thrown) {
    if (!(thrown instanceof MandateError)) throw thrown;
    const hint = thrown.code === "SUBJECT_REQUIRED" ? "; the node has no keys of grants (MANDATE_KEYS)" : "";
    terminal.complain(`${thrown.code}: ${thrown.message}${hint}\n`);
    return 1;
  }
}

/** `mandate grant issue`, `delegate`, `inspect` and `revoke`. Answers the exit code. @throws UsageError */
export async function runGrant(verb: string | undefined, terminal: Terminal): Promise<number> {
  switch (verb ?? "") {
    case "issue":
      return issue(terminal);
    case "delegate":
      return delegate(terminal);
    case "inspect":
      return inspect(terminal);
    case "revoke":
      return revoke(terminal);
    default:
      throw new UsageError(`there is no command mandate grant ${verb ?? ""}`.trim());
  }
}
