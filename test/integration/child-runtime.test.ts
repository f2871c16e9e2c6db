/**
 * Goal: a program that does the work stays within its bounds, its failure says what happened, and whatever it does and
 * however it is stopped, nothing of it is left running.
 * Method: real programs that fork, ignore signals, flood, hang, spin, eat memory and print what is no answer; the process
 * table is looked at afterwards.
 */
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { poll } from "../../cluster/poll.ts";
import type { Json } from "../../src/base/json.ts";
import { MandateError } from "../../src/core/errors.ts";
import { childProcessRuntime, type ChildProcessOptions } from "../../src/sdk/runtimes/child-process.ts";
import {
  runtimeHandler,
  unrestricted,
  type RuntimeContext,
  type RuntimePolicy,
  type RuntimeResult,
} from "../../src/sdk/runtimes/runtime.ts";
import { WorkloadFailure, WorkStopped } from "../../src/sdk/workload-failure.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mandate-child-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const claim = { workloadId: "workload_1", attemptId: "attempt_workload_1_2", fencingToken: 2 };
const bounded: RuntimePolicy = { ...unrestricted, maxDurationMs: 20_000, secretPolicy: { variables: [] } };

interface Run {
  readonly policy?: Partial<RuntimePolicy>;
  readonly options?: Partial<ChildProcessOptions>;
  readonly input?: Json;
  readonly signal?: AbortSignal;
  readonly checkpoint?: RuntimeContext["checkpoint"];
}

const contextOf = ({ signal, checkpoint }: Run): RuntimeContext => ({
  attempt: 2,
  checkpoints: [],
  capabilities: ["c"],
  connectionScopes: [],
  signal: signal ?? new AbortController().signal,
  checkpoint: checkpoint ?? (() => Promise.reject(new MandateError("WORKLOAD_INVALID", "no checkpoint is expected"))),
  heartbeat: () => Promise.resolve({ cancellationRequested: false }),
});

/** Runs a shell script, or a program, to its end. */
async function run(program: string | readonly [string, ...string[]], how: Run = {}): Promise<RuntimeResult> {
  const [command, ...args] = typeof program === "string" ? (["sh", "-c", program] as const) : program;
  const runtime = childProcessRuntime({ command, args, cwd: directory, ...how.options });
  await runtime.start(claim, { ...bounded, ...how.policy });
  return runtime.execute(claim, how.input ?? null, contextOf(how));
}

const failureOf = async (running: Promise<unknown>): Promise<WorkloadFailure> => {
  const thrown: unknown = await running.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(thrown).toBeInstanceOf(WorkloadFailure);
  return thrown as WorkloadFailure;
};

/** What runs in the group whose leader wrote its id into a file. */
function membersOf(group: number): string[] {
  const table = execFileSync("ps", ["-eo", "pgid=,stat=,args="], { encoding: "utf8" }).split("\n");
  return table.map((line) => line.trim()).filter((line) => line.startsWith(`${group} `) && !/^\d+ +Z/.test(line));
}
const groupIn = (name: string): Promise<number | undefined> =>
  poll(
    async () => {
      const text = await readFile(join(directory, name), "utf8").catch(() => "");
      return text.endsWith("\n") ? Number(text) : undefined;
    },
    { timeoutMs: 10_000 },
  );
const leftIn = async (name: string): Promise<string[]> => {
  const group = (await groupIn(name)) ?? 0;
  expect(group).toBeGreaterThan(1);
  // A killed process is off the table as soon as the kernel gets round to it.
  await poll(() => (membersOf(group).length === 0 ? true : undefined), { timeoutMs: 1_000 });
  return membersOf(group);
};

describe("a program that does its work", () => {
  test("gets it as one line of JSON and answers with what it prints", async () => {
    const result = await run(["cat"], { input: { order: "ä", list: [1, null] } });
    expect(result.output).toEqual({
      ...claim,
      attempt: 2,
      input: { order: "ä", list: [1, null] },
      checkpoints: [],
      capabilities: ["c"],
      connectionScopes: [],
    });
    expect(result).toMatchObject({ resultId: "result_attempt_workload_1_2", logs: [], artifacts: [] });
  });

  test("sees no variable of the worker but those it needs, those it is given and those its policy names", async () => {
    process.env["MANDATE_TEST_ALLOWED"] = "shown";
    process.env["MANDATE_TEST_OTHER"] = "hidden";
    const { output } = await run([process.execPath, "-e", "console.log(JSON.stringify(process.env))"], {
      options: { env: { GIVEN: "1" } },
      policy: {
        secretPolicy: { variables: ["MANDATE_TEST_ALLOWED"] },
        networkPolicy: { allow: ["example.org"], enforced: false },
      },
    });
    const env = output as { readonly [name: string]: string };
    expect(env).toMatchObject({
      GIVEN: "1",
      MANDATE_TEST_ALLOWED: "shown",
      MANDATE_FENCING_TOKEN: "2",
      MANDATE_WORKLOAD_ID: "workload_1",
      MANDATE_NETWORK_POLICY: '["example.org"]',
      MANDATE_FILESYSTEM_POLICY: '"all"',
      PATH: process.env["PATH"],
    });
    expect(Object.keys(env)).not.toContain("MANDATE_TEST_OTHER");
  });

  test("commits its checkpoints in order, before its result, also the last without a line end", async () => {
    const seen: unknown[] = [];
    const { output } = await run(
      `echo '{"step":1}' >&3; echo >&3; echo '{"step":2}' >&3; printf 3 >&3; echo '"done"'`,
      {
        checkpoint: async (state) => {
          await new Promise((resolve) => setImmediate(resolve));
          seen.push(state);
          return { sequence: seen.length } as never;
        },
      },
    );
    expect([output, seen]).toEqual(["done", [{ step: 1 }, { step: 2 }, 3]]);
  });

  test("need not read its input", async () => {
    const input = "x".repeat(4_000_000);
    expect((await run("exec 0<&-; echo 1", { input })).output).toBe(1);
    expect((await run("echo 2", { input })).output).toBe(2);
  });

  test("has what it said kept from a bound on, without the secrets that it was given", async () => {
    process.env["MANDATE_TEST_ALLOWED"] = "correct-horse-battery";
    const script = `yes noise | head -c 300000 >&2; echo "I use $MANDATE_TEST_ALLOWED" >&2; echo 1`;
    const policy = { secretPolicy: { variables: ["MANDATE_TEST_ALLOWED"] } };
    const { logs } = await run(script, { policy, options: { logBytesMax: 1_000 } });
    expect(logs.at(-1)).toBe("I use [redacted]");
    expect(logs.join("\n").length).toBeLessThanOrEqual(1_000);
  });

  test("takes what it has left in the background with it", async () => {
    const { output } = await run(`echo $$ > group; sleep 1000 & sh -c 'trap "" TERM; sleep 1001' & echo 5`);
    expect(output).toBe(5);
    expect(await leftIn("group")).toEqual([]);
  });

  test.runIf(process.platform === "linux")(
    "ends although a process that left its group holds its output open",
    async () => {
      const from = performance.now();
      const escape = `setsid sh -c 'echo $$ > escaped; exec sleep 20' &`;
      const { output } = await run(`${escape} while [ ! -s escaped ]; do sleep 0.05; done; echo 6`);
      expect(output).toBe(6);
      expect(performance.now() - from).toBeLessThan(8_000);
      const escaped = await groupIn("escaped");
      expect(escaped).toBeGreaterThan(1);
      if (escaped !== undefined) process.kill(escaped, "SIGKILL");
    },
  );
});

describe("a program that fails", () => {
  test.each<[string, string, string, RegExp]>([
    ["an exit code", "echo broken >&2; exit 3", "exit_code", /^it ended with exit code 3; standard error:\nbroken$/],
    ["no word", "exit 4", "exit_code", /^it ended with exit code 4 and wrote nothing to standard error$/],
    ["a signal", "kill -SEGV $$", "killed", /^it was ended by SIGSEGV/],
    ["nothing printed", "true", "output_invalid", /^it printed nothing/],
    ["half an answer", `printf '{"a": [1,'`, "output_invalid", /^its standard output is not JSON: line 1, column 10/],
    ["two answers", "echo 1; echo 2", "output_invalid", /^its standard output is not JSON: line 2/],
    ["no UTF-8", String.raw`printf '"\377"'`, "output_invalid", /^its standard output is not UTF-8/],
    ["a checkpoint that is no JSON", "echo oops >&3; sleep 30", "checkpoint_rejected", /descriptor 3 is not JSON/],
  ])("says how: %s", async (_what, script, kind, message) => {
    const failure = await failureOf(run(script));
    expect(failure.kind).toBe(kind);
    expect(failure.message).toMatch(message);
  });

  test("shows no secret in what it said", async () => {
    const script = [
      "echo 'calling with sk-abc123 and password=hunter2' >&2",
      "echo '-----BEGIN RSA PRIVATE KEY-----' >&2; echo MIIEow >&2; echo '-----END RSA PRIVATE KEY-----' >&2",
      "printf '\\033[31mred\\033[0m task-3\\n' >&2; exit 1",
    ].join("\n");
    expect((await failureOf(run(script))).message).toBe(
      "it ended with exit code 1; standard error:\ncalling with [redacted] and password=[redacted]\n[redacted]\nred task-3",
    );
  });

  test("to start is the worker's fault, and surely changed nothing", async () => {
    for (const policy of [{}, { maxCpuMillis: 1_000 }]) {
      const failure = await failureOf(run(["no-such-program-anywhere"], { policy }));
      expect([failure.kind, failure.effect]).toEqual(["worker_failure", "none"]);
      expect(failure.message).toBe("the program could not be started (ENOENT)");
    }
  });

  test("by a refused checkpoint is ended with the refusal's code", async () => {
    const failure = await failureOf(
      run("echo $$ > group; echo '{}' >&3; sleep 1000", {
        checkpoint: () => Promise.reject(new MandateError("WORKLOAD_TOO_LARGE", "too large")),
      }),
    );
    expect(failure).toMatchObject({
      kind: "checkpoint_rejected",
      message: "a checkpoint was refused with WORKLOAD_TOO_LARGE",
    });
    expect(await leftIn("group")).toEqual([]);
  });
});

/** Forks, and neither it nor its children hear SIGTERM. */
const stubborn = `trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $$ > group; while :; do sleep 1; done`;

describe("a program is ended with all that it started", () => {
  test("when its time is over, although it ignores SIGTERM", async () => {
    const failure = await failureOf(run(stubborn, { policy: { maxDurationMs: 300 }, options: { killGraceMs: 300 } }));
    expect(failure).toMatchObject({ kind: "timeout", effect: "unknown", message: "it took longer than 300 ms" });
    expect(await leftIn("group")).toEqual([]);
  });

  test.each(["cancelled", "shutdown"] as const)("when its work is stopped: %s", async (stopCause) => {
    const stop = new AbortController();
    const running = run(`trap 'echo ended > ended; exit 0' TERM; echo $$ > group; while :; do sleep 0.1; done`, {
      signal: stop.signal,
    });
    await groupIn("group");
    const reason = new WorkStopped(stopCause, "stop");
    stop.abort(reason);
    await expect(running).rejects.toBe(reason);
    expect(await readFile(join(directory, "ended"), "utf8")).toBe("ended\n");
    expect(await leftIn("group")).toEqual([]);
  });

  test("within half a second when its lease is lost", async () => {
    const stop = new AbortController();
    const running = run(stubborn, { signal: stop.signal, options: { killGraceMs: 20_000 } });
    await groupIn("group");
    const from = performance.now();
    stop.abort(new WorkStopped("lease_lost", "lost"));
    await expect(running).rejects.toBeInstanceOf(WorkStopped);
    expect(performance.now() - from).toBeLessThan(1_500);
    expect(await leftIn("group")).toEqual([]);
  });

  test("while it is stopped itself", async () => {
    const stop = new AbortController();
    const running = run(`echo $$ > group; kill -STOP $$; echo 1`, { signal: stop.signal });
    await groupIn("group");
    stop.abort(new WorkStopped("cancelled", "stop"));
    await expect(running).rejects.toBeInstanceOf(WorkStopped);
    expect(await leftIn("group")).toEqual([]);
  });

  test("when the runtime is told to, by claim; and it says when it is done", async () => {
    const runtime = childProcessRuntime({ command: "sh", args: ["-c", stubborn], cwd: directory, killGraceMs: 200 });
    for (const how of ["cancel", "timeout"] as const) {
      await rm(join(directory, "group"), { force: true });
      await runtime.start(claim, bounded);
      const outcome = runtime.execute(claim, null, contextOf({})).catch((reason: unknown) => reason);
      await groupIn("group");
      await runtime[how](claim);
      expect(await leftIn("group")).toEqual([]);
      expect(await outcome).toBeInstanceOf(how === "cancel" ? WorkStopped : WorkloadFailure);
    }
  });

  test("when it prints without end", async () => {
    const failure = await failureOf(run("echo $$ > group; yes", { options: { outputBytesMax: 100_000 } }));
    expect([failure.kind, failure.message]).toEqual(["output_too_large", "it wrote more than 100000 bytes"]);
    expect(await leftIn("group")).toEqual([]);
  });

  test("when a checkpoint has no end", async () => {
    const script = "echo $$ > group; yes | tr -d '\\n' >&3";
    expect((await failureOf(run(script, { options: { outputBytesMax: 100_000 } }))).kind).toBe("output_too_large");
    expect(await leftIn("group")).toEqual([]);
  });

  test("when it spins, whichever of its processes does", async () => {
    const spin = `while :; do :; done`;
    const failure = await failureOf(run(`echo $$ > group; (${spin}) & ${spin}`, { policy: { maxCpuMillis: 300 } }));
    expect(failure.kind).toBe("cpu_exceeded");
    expect(await leftIn("group")).toEqual([]);
  });

  test.runIf(process.platform === "linux")(
    "when it takes more memory than it may, whichever process does",
    async () => {
      const hungry = `const kept = []; setInterval(() => kept.push(Buffer.alloc(8e6, 1)), 5)`;
      const failure = await failureOf(
        run(`echo $$ > group; node -e '${hungry}' & wait`, { policy: { maxMemoryBytes: 200_000_000 } }),
      );
      expect(failure).toMatchObject({ kind: "memory_exceeded" });
      expect(await leftIn("group")).toEqual([]);
    },
  );

  test("by the kernel when it spins where nobody looks", async () => {
    // What a process that is reparented uses is not the group's any more; its own limit still holds.
    const script = `ulimit -t`;
    expect((await run(script, { policy: { maxCpuMillis: 1_001 } })).output).toBe(2);
  });

  test("and what it used is told where it is bounded", async () => {
    const script = `i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 0.3; echo 1`;
    const { resourceUsage } = await run(script, { policy: { maxCpuMillis: 60_000 } });
    expect(resourceUsage.cpuMillis).toBeGreaterThan(0);
    expect(resourceUsage.durationMs).toBeGreaterThan(300);
  });
});

describe("a policy", () => {
  test.each<[string, Partial<RuntimePolicy>]>([
    ["maxDurationMs", { maxDurationMs: 0 }],
    ["maxCpuMillis", { maxCpuMillis: 1.5 }],
    ["maxMemoryBytes", { maxMemoryBytes: -1 }],
    ["networkPolicy.enforced", { networkPolicy: { allow: [], enforced: true } }],
    ["filesystemPolicy.enforced", { filesystemPolicy: { allow: ["/tmp"], enforced: true } }],
  ])("that can't be kept is refused by its name: %s", async (path, change) => {
    const runtime = childProcessRuntime({ command: "true" });
    expect(() => runtimeHandler(runtime, { ...bounded, ...change })).toThrow(
      expect.objectContaining({
        code: "WORKLOAD_INVALID",
        details: expect.objectContaining({ paths: [path] }) as unknown,
      }),
    );
  });
});
