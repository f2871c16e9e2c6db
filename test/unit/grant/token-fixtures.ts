import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { makePrivateJwk, readSigningKey, type SigningKey } from "../../../src/grants/sign-token.ts";

type PrivateJwk = Awaited<ReturnType<typeof makePrivateJwk>>;

/** A key pair, and what signs with it. */
export interface TestKey {
  readonly jwk: PrivateJwk;
  readonly signing: SigningKey;
  readonly kid: string;
}

export async function makeKey(): Promise<TestKey> {
  const jwk = await makePrivateJwk();
  const signing = await readSigningKey(jwk);
  if (!signing.ok) throw new TypeError(signing.error);
  return { jwk, signing: signing.value, kid: signing.value.publicKey.kid };
}

/** A folder that is gone after the test. */
export async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "mandate-keys-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes a key file, and answers its path. */
export async function writeKey(folder: string, name: string, content: unknown): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

/** What a refusal or a value is, in a word. */
export const codeOf = (result: { readonly ok: boolean; readonly error?: unknown }): unknown =>
  result.ok ? "ok" : (result.error as { readonly code: string }).code;
