import { open } from "node:fs/promises";
import { keysByKid, readKeyFile, renderJwks, type PublicKey } from "../grants/public-keys.ts";
import { makePrivateJwk, readSigningKey, type SigningKey } from "../grants/sign-token.ts";
import { UsageError } from "./arguments.ts";
import { readCommandLine, readNamedFile, type Terminal } from "./grant-arguments.ts";

/** Writes what only its owner may read; never over something else. */
export async function writeSecret(path: string, text: string): Promise<void> {
  try {
    const file = await open(path, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (thrown) {
    const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unknown";
    throw new UsageError(
      code === "EEXIST" ? `${path} exists already, and is left as it is` : `${path} can't be written (${code})`,
      { cause: thrown },
    );
  }
}

/** Reads a private key file. @throws UsageError that names the file and never what it holds. */
export async function readPrivateKey(path: string): Promise<SigningKey> {
  const text = await readNamedFile(path);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new UsageError(`${path} is not JSON`);
  }
  const key = await readSigningKey(value);
  if (!key.ok) throw new UsageError(`${path} ${key.error}`);
  return key.value;
}

/** Reads public keys of files. @throws UsageError */
export async function readPublicKeys(paths: readonly string[]): Promise<ReadonlyMap<string, PublicKey>> {
  const found: PublicKey[] = [];
  for (const path of paths) {
    const keys = await readKeyFile(Buffer.from(await readNamedFile(path)));
    if (!keys.ok) throw new UsageError(`${path} ${keys.error}`);
    found.push(...keys.value);
  }
  const byKid = keysByKid(found);
  if (!byKid.ok) throw new UsageError(byKid.error);
  return byKid.value;
}

async function makeKey(terminal: Terminal): Promise<number> {
  const line = readCommandLine(terminal.args, { out: "text" });
  if (line.positionals.length > 0) throw new UsageError("mandate keys new takes no arguments but --out");
  const jwk = await makePrivateJwk();
  const text = `${JSON.stringify(jwk, null, 2)}\n`;
  const path = line.text("out");
  if (path === undefined) terminal.write(text);
  else {
    await writeSecret(path, text);
    terminal.write(`${path} holds the private key ${jwk.kid ?? ""}\n`);
  }
  return 0;
}

async function publishKeys(terminal: Terminal): Promise<number> {
  const line = readCommandLine(terminal.args, {});
  if (line.positionals.length === 0) throw new UsageError("mandate keys jwks needs the key files");
  const keys = await readPublicKeys(line.positionals);
  terminal.write(`${renderJwks([...keys.values()])}\n`);
  return 0;
}

/** `mandate keys new` and `mandate keys jwks`. Answers the exit code. @throws UsageError */
export async function runKeys(verb: string | undefined, terminal: Terminal): Promise<number> {
  if (verb === "new") return makeKey(terminal);
  if (verb === "jwks") return publishKeys(terminal);
  throw new UsageError(`there is no command mandate keys ${verb ?? ""}`.trim());
}
