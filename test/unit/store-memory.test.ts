/**
 * Goal: a node never forgets a store that it has seen (contract 5.6).
 * Method: notes in a folder of the test's own.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
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
