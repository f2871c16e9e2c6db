/**
 * Goal: a chaos run needs nothing but this checkout and a container.
 * Method: the compose file's runner makes a very short run and judges it; it has no network beside its own loopback.
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { projectRoot } from "../../cluster/project-root.ts";
import { findCompose, missingEngine } from "./docker.ts";

const execute = promisify(execFile);

const missing = await missingEngine();
const compose = missing === undefined ? await findCompose() : undefined;
const project = `mandate-chaos-${randomBytes(4).toString("hex")}`;

function runCompose(...args: readonly string[]): Promise<{ readonly stdout: string }> {
  const [program, ...first] = compose === "standalone" ? ["docker-compose"] : ["docker", "compose"];
  const whole = [...first, "--project-name", project, ...args];
  return execute(program ?? "docker", whole, { cwd: projectRoot(), timeout: 200_000 });
}

describe.skipIf(compose === undefined)("the chaos runner of docker-compose.yml", () => {
  afterAll(() => runCompose("down", "--volumes"), 60_000);

  it("makes a run, judges it, and says what came of it", async () => {
    const { stdout } = await runCompose(
      "run",
      "--rm",
      "chaos",
      "--minutes",
      "0.3",
      "--seed",
      "4",
      "--out",
      "/reports/r",
    );
    expect(stdout).toContain("seed 4, 0.3 minutes; /reports/r");
    expect(stdout).toMatch(/^ok {3}record-succession \([1-9]\d* facts\)/m);
    expect(stdout).toContain("no violations");
  }, 240_000);
});
