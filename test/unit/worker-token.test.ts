/**
 * Goal: a worker of the command line uses the grant that it was given, and what a file holds later than at its start.
 * Method: flags, variables and real files, written anew while they are followed.
 */
import { execFileSync } from "node:child_process";
import { mkdtemp, rm, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { poll } from "../../cluster/poll.ts";
import { followTokenFile, readWorkerToken } from "../../src/cli/worker-token.ts";
import { UsageError } from "../../src/cli/arguments.ts";
import { checkToken } from "../../src/sdk/grant-token.ts";

let directory: string;
let file: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "mandate-token-"));
  file = join(directory, "grant.jwt");
  await writeFile(file, "a.b.c\n");
});
afterAll(() => rm(directory, { recursive: true }));

test("a grant comes from a flag, a variable or a file, and from one of them", () => {
  expect(readWorkerToken({}, {})).toEqual({});
  expect(readWorkerToken({}, { MANDATE_TOKEN: "", MANDATE_TOKEN_FILE: "" })).toEqual({});
  expect(readWorkerToken({ token: "x" }, { MANDATE_TOKEN: "y" })).toEqual({ token: "x" });
  expect(readWorkerToken({}, { MANDATE_TOKEN: "y" })).toEqual({ token: "y" });
  expect(readWorkerToken({}, { MANDATE_TOKEN_FILE: file })).toEqual({ token: "a.b.c", file });
  expect(readWorkerToken({ "token-file": file }, {})).toEqual({ token: "a.b.c", file });
  expect(() => readWorkerToken({ "token-file": file }, { MANDATE_TOKEN: "y" })).toThrow(/given twice/);
});

test("a file that holds no grant is refused at the start, by its name", async () => {
  expect(() => readWorkerToken({ "token-file": join(directory, "none") }, {})).toThrow(/none can't be read: ENOENT/);
  expect(() => readWorkerToken({ "token-file": directory }, {})).toThrow(UsageError);
  const empty = join(directory, "empty");
  await writeFile(empty, " \n");
  expect(() => readWorkerToken({ "token-file": empty }, {})).toThrow(/empty holds no grant/);
});

test("what was written while the worker was being connected is used at once", async () => {
  const used: string[] = [];
  const worker = { ended: Promise.resolve(), useToken: (token: string) => void used.push(token) };
  followTokenFile(worker, { token: "before.b.c", file }, { say: () => undefined });
  await worker.ended;
  expect(used).toEqual(["a.b.c"]);
});

test("what is written later is used; what can't be is told once, and the last grant stays", async () => {
  const used: string[] = [];
  const said: string[] = [];
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const useToken = (token: string): void => {
    checkToken(token);
    used.push(token);
  };
  followTokenFile({ ended, useToken }, { token: "a.b.c", file }, { say: (text) => said.push(text), everyMs: 5 });
  const until = async (isSo: () => boolean): Promise<void> => {
    expect(await poll(() => (isSo() ? true : undefined), { timeoutMs: 10_000, intervalMs: 5 })).toBe(true);
  };
  await writeFile(file, "d.e.f\n");
  await until(() => used.length === 1);
  await writeFile(file, "no grant\n");
  await until(() => said.length === 2);
  await unlink(file);
  await until(() => said.length === 3);
  await writeFile(file, "g.h.i\n");
  await until(() => used.length === 2);
  await unlink(file);
  execFileSync("sh", ["-c", `mkfifo ${file}`]);
  await until(() => said.length === 5);
  end();
  expect(used).toEqual(["d.e.f", "g.h.i"]);
  expect(said.map((line) => line.replace(file, "FILE"))).toEqual([
    "there is another grant in FILE",
    expect.stringContaining("the grant in FILE can't be used, the last one is kept: token is no grant"),
    "the grant in FILE can't be used, the last one is kept: ENOENT",
    "there is another grant in FILE",
    expect.stringMatching(/^the grant in FILE can't be used, .*: (ENOENT|it is no file that can be read again)$/),
  ]);
});
