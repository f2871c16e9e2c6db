/**
 * Goal: what follows --exec is the program, word by word, and what stands before it is checked before anything runs.
 * Method: command lines, right and wrong.
 */
import { describe, expect, test } from "vitest";
import { parseFlags, UsageError } from "../../src/cli/arguments.ts";
import { runExecWorker } from "../../src/cli/exec-worker.ts";
import {
  demoWorkerOptions,
  execWorkerOptions,
  splitProgram,
  withServers,
  workerFlags,
} from "../../src/cli/worker-arguments.ts";

const flagsOf = (...args: readonly string[]): ReturnType<typeof parseFlags> =>
  parseFlags(
    args,
    workerFlags.map((name) => ({ name, takesValue: true })),
  );

describe("the program", () => {
  test.each<[string, readonly string[], readonly string[], readonly string[] | undefined]>([
    ["none", ["--name", "a"], ["--name", "a"], undefined],
    ["after --exec", ["--name", "a", "--exec", "cat", "--name"], ["--name", "a"], ["cat", "--name"]],
    ["after --", ["--name", "a", "--", "cat", "--exec", "x"], ["--name", "a"], ["cat", "--exec", "x"]],
    ["after both", ["--exec", "--", "cat", "--", "x"], [], ["cat", "--", "x"]],
    ["not given", ["--exec"], [], []],
  ])("is what follows the first mark: %s", (_what, args, given, program) => {
    expect(splitProgram(args)).toEqual({ given, program });
  });
});

describe("the flags", () => {
  test("have their initial values", () => {
    expect(execWorkerOptions(flagsOf(), ["cat", "-n"])).toEqual({
      servers: ["127.0.0.1:4222"],
      tenantId: "demo",
      applicationId: "shop",
      name: "exec",
      concurrency: 1,
      leaseMs: 30_000,
      command: "cat",
      args: ["-n"],
      capabilities: [],
      variables: [],
      maxDurationMs: 3_600_000,
      maxMemoryBytes: undefined,
      maxCpuMillis: undefined,
      graceMs: 20_000,
    });
    expect(demoWorkerOptions(flagsOf())).toMatchObject({ name: "demo", concurrency: 4, leaseMs: 5_000 });
  });

  test("name the servers before the variable does, which does before the usual address", () => {
    const environment = { MANDATE_NATS_SERVERS: "a:4222,b:4222" };
    const serversOf = (...args: readonly string[]): readonly string[] =>
      demoWorkerOptions(withServers(flagsOf(...args), environment)).servers;
    expect(serversOf()).toEqual(["a:4222", "b:4222"]);
    expect(serversOf("--nats", "c:4222")).toEqual(["c:4222"]);
    expect(demoWorkerOptions(withServers(flagsOf(), { MANDATE_NATS_SERVERS: "" })).servers).toEqual(["127.0.0.1:4222"]);
    expect(() => demoWorkerOptions(withServers(flagsOf(), { MANDATE_NATS_SERVERS: "a b" }))).toThrow(UsageError);
  });

  test("are read", () => {
    const flags = flagsOf("--capabilities", "a,b", "--env", "A, B", "--max-memory-bytes", "64000000000");
    expect(execWorkerOptions(flags, ["cat"])).toMatchObject({
      capabilities: ["a", "b"],
      variables: ["A", "B"],
      maxMemoryBytes: 64_000_000_000,
    });
  });

  test.each<[readonly string[], readonly string[], string]>([
    [[], [], "--exec names no program"],
    [[], [""], "--exec names no program"],
    [["--nats", ","], ["cat"], "--nats names no server"],
    [["--nats", "a:b:c"], ["cat"], "--nats (or MANDATE_NATS_SERVERS) must be host:port"],
    [["--nats", "me:word@host:4222"], ["cat"], "--nats (or MANDATE_NATS_SERVERS) must be host:port"],
    [["--tenant", ""], ["cat"], "--tenant must not be empty"],
    [["--env", "A,B=3"], ["cat"], "--env takes names of variables"],
    [["--concurrency", "0"], ["cat"], '--concurrency="0" must be a whole number from 1 to 1000'],
    [["--lease-ms", "1e3"], ["cat"], '--lease-ms="1e3" must be a whole number from 100'],
    [["--max-duration-ms", "0"], ["cat"], '--max-duration-ms="0" must be a whole number from 1'],
    [["--max-memory-bytes", "64M"], ["cat"], '--max-memory-bytes="64M" must be a whole number from 1'],
    [["--grace-ms=-1"], ["cat"], '--grace-ms="-1" must be a whole number from 0'],
  ])("that make no sense are named: %j", (args, program, message) => {
    expect(() => execWorkerOptions(flagsOf(...args), program)).toThrow(message);
  });

  test("of programs alone are refused without one", () => {
    expect(() => demoWorkerOptions(flagsOf("--env", "A"))).toThrow("--env needs --exec");
  });
});

test.each([
  ["no-such-program-anywhere", /^--exec: there is no program "no-such-program-anywhere"$/],
  ["sh -c true", /its arguments are words of their own/],
  ["/tmp", /there is no program "\/tmp"/],
])("a program that can't be started is refused before anything is connected: %s", async (command, why) => {
  const options = { ...execWorkerOptions(flagsOf("--nats", "127.0.0.1:1"), [command]), login: {}, grant: {} };
  const refused = await runExecWorker(options, () => undefined).catch((thrown: unknown) => thrown);
  expect(refused).toBeInstanceOf(UsageError);
  expect((refused as UsageError).message).toMatch(why);
});
