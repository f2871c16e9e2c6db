/**
 * Goal: a node never forgets a store that it has seen (contract 5.6).
 * Method: notes in a folder of the test's own.
 */
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { NodeRefusal } from "../../src/node/node-error.ts";
import { StoreMemory } from "../../src/node/store-memory.ts";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mandate-memory-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test("a store that was seen is remembered by the next process, also after another one was used", async () => {
  const memory = new StoreMemory(join(directory, "not", "there", "yet"));
  expect(await memory.hasSeen("main")).toBe(false);
  await memory.note("main");
  await memory.note("other");
  const next = new StoreMemory(join(directory, "not", "there", "yet"));
  expect([await next.hasSeen("main"), await next.hasSeen("other"), await next.hasSeen("third")]).toEqual([
    true,
    true,
    false,
  ]);
});

test.each(["", "{", "[]", '{"epochs":"main"}'])(
  "a note that says %j counts as seen, whatever the epoch",
  async (text) => {
    await writeFile(join(directory, "store-seen.json"), text);
    expect(await new StoreMemory(directory).hasSeen("any")).toBe(true);
  },
);

test("without a folder nothing is remembered", async () => {
  const memory = new StoreMemory(undefined);
  await memory.note("main");
  expect(await memory.hasSeen("main")).toBe(false);
});

test.each([
  ["is a file", (place: string) => writeFile(place, "")],
  ["lies in a file", (place: string) => writeFile(join(place, ".."), "")],
])("a state directory that %s is refused in one line, before and while noting", async (_what, spoil) => {
  const place = join(directory, "a", "b");
  await mkdir(join(directory, "a"));
  if (_what === "lies in a file") await rm(join(directory, "a"), { recursive: true });
  await spoil(place);
  const memory = new StoreMemory(place);
  for (const refused of [memory.prepare(), memory.note("main")]) {
    const thrown: unknown = await refused.catch((reason: unknown) => reason);
    expect(thrown).toBeInstanceOf(NodeRefusal);
    expect((thrown as NodeRefusal).message).toMatch(
      /^the state directory \S+\/a\/b can't be used \(E[A-Z]+\); name a folder/,
    );
  }
});

// Root may write anywhere.
test.skipIf(process.getuid?.() === 0)("a state directory that may not be written in is refused", async () => {
  const place = join(directory, "locked");
  await mkdir(place);
  await chmod(place, 0o500);
  await expect(new StoreMemory(place).prepare()).rejects.toThrow(/can't be used \(EACCES\)/);
});
