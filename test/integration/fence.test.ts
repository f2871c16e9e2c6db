/**
 * Goal: the bucket of the worked example refuses stale workers, also when several write at once.
 * Method: a real nats-server; writers with different tokens race for one key, again and again, and what the bucket has
 * kept over its whole history is looked at.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Kvm, type KV } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePorts } from "../../cluster/free-ports.ts";
import { NatsServer } from "../../cluster/nats-server.ts";
import { putFenced } from "../../examples/fence-kv.ts";

let directory: string;
let server: NatsServer;
let connection: NatsConnection;
let bucket: KV;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "mandate-fence-"));
  const [clientPort = 0, monitorPort = 0] = await freePorts([undefined, undefined]);
  server = new NatsServer({ name: "n1", directory, clientPort, monitorPort });
  await server.start();
  await server.waitReady();
  connection = await connect({ servers: server.url });
  bucket = await new Kvm(connection).create("invoices", { history: 64, storage: "memory" });
});
afterAll(async () => {
  await connection?.close();
  await server?.kill();
  await rm(directory, { recursive: true, force: true });
});

const stored = async (key: string): Promise<unknown> => (await bucket.get(key))?.json();

test("the newest holder writes, as often as it likes, and a stale one never", async () => {
  expect(await putFenced(bucket, "7", { fencingToken: 1, value: 100 })).toBe(true);
  expect(await putFenced(bucket, "7", { fencingToken: 1, value: 110 })).toBe(true);
  expect(await putFenced(bucket, "7", { fencingToken: 3, value: 200 })).toBe(true);
  expect(await putFenced(bucket, "7", { fencingToken: 2, value: 666 })).toBe(false);
  expect(await stored("7")).toEqual({ fencingToken: 3, value: 200 });
});

test("a key that was deleted can be written again", async () => {
  await putFenced(bucket, "8", { fencingToken: 5, value: 1 });
  await bucket.delete("8");
  expect(await putFenced(bucket, "8", { fencingToken: 1, value: 2 })).toBe(true);
});

test("of writers at once the tokens never fall, and the highest wins", async () => {
  for (let round = 0; round < 10; round++) {
    const key = `race-${round}`;
    const tokens = [4, 1, 7, 2, 6, 3, 5, 7];
    const written = await Promise.all(tokens.map((fencingToken) => putFenced(bucket, key, { fencingToken, value: 0 })));
    expect(written.filter((_, index) => tokens[index] === 7)).toEqual([true, true]);
    const history: number[] = [];
    for await (const entry of await bucket.history({ key }))
      history.push(entry.json<{ readonly fencingToken: number }>().fencingToken);
    expect(history).toEqual(history.toSorted((left, right) => left - right));
    expect(history.at(-1)).toBe(7);
    expect(history).toHaveLength(written.filter(Boolean).length);
  }
});
