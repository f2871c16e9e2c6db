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

/**
 * Why no container can be started here; `undefined` when one can. The reason is printed, too. `CONTAINER_TESTS=off` is one.
 */
export async function missingEngine(): Promise<string | undefined> {
  const reason = process.env["CONTAINER_TESTS"] === "off" ? "CONTAINER_TESTS=off" : await problemOfEngine();
  if (reason !== undefined) process.stdout.write(`container tests are skipped: ${reason}\n`);
  return reason;
}

async function problemOfEngine(): Promise<string | undefined> {
  try {
    await docker(["info", "--format", "{{.ServerVersion}}"], 20_000);
    return undefined;
  } catch (thrown) {
    const text = thrown instanceof Error && "stderr" in thrown ? String(thrown.stderr) : "";
    return text.trim().split("\n").at(-1) || "the docker program is not there";
  }
}
