import { execFile } from "node:child_process";
import { promisify } from "node:util";

const execute = promisify(execFile);

// The tests remove what they start themselves; the container that would do it for them needs one more image.
process.env["TESTCONTAINERS_RYUK_DISABLED"] ??= "true";

/** The image tag that docker-compose.yml names. */
export const NATS_IMAGE = "nats:2.15.1";

/** Runs `docker` with these arguments and answers what it printed. Rejects when it fails or takes longer than `timeoutMs`. */
export async function docker(args: readonly string[], timeoutMs = 60_000): Promise<string> {
  const { stdout } = await execute("docker", [...args], { timeout: timeoutMs });
  return stdout.trim();
}

/** How compose is called on this machine: `docker compose`, or the older program of its own. */
export type ComposeProgram = "plugin" | "standalone";

const runs = (program: string, ...args: readonly string[]): Promise<boolean> =>
  execute(program, args, { timeout: 20_000 }).then(
    () => true,
    () => false,
  );

/** `undefined` when there is no compose. */
export async function findCompose(): Promise<ComposeProgram | undefined> {
  if (await runs("docker", "compose", "version")) return "plugin";
  return (await runs("docker-compose", "version")) ? "standalone" : undefined;
}

/** Why no container can be started here; `undefined` when one can. The reason is printed, too. */
export async function missingEngine(): Promise<string | undefined> {
  try {
    await docker(["info", "--format", "{{.ServerVersion}}"], 20_000);
    return undefined;
  } catch (thrown) {
    const text = thrown instanceof Error && "stderr" in thrown ? String(thrown.stderr) : "";
    const reason = text.trim().split("\n").at(-1) ?? "";
    const told = reason === "" ? "the docker program is not there" : reason;
    process.stdout.write(`container tests are skipped: no Docker engine can be reached (${told})\n`);
    return told;
  }
}
