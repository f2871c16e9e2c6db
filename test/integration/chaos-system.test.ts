// Goal: what keeps a chaos run's processes running does not take a process that gives up for a run that failed.
// Method: a real node with a wrong clock, which it refuses to run with, as a fault of a run leaves it.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Recorder } from "../../chaos/recorder.ts";
import { clockOrigin, RunClock } from "../../chaos/run-clock.ts";
import { Kept } from "../../chaos/system/kept.ts";
import { clockEnvironment, setClock } from "../../chaos/system/nodes.ts";
import { AuthorityProcess } from "../../cluster/authority-process.ts";
import { freePorts } from "../../cluster/free-ports.ts";
import { NatsServer } from "../../cluster/nats-server.ts";

test("a node that ended over its clock is waited for through its next starts", async () => {
  const directory = await mkdtemp(join(tmpdir(), "mandate-kept-"));
  const [clientPort = 0, monitorPort = 0, httpPort = 0] = await freePorts([undefined, undefined, undefined]);
  const nats = new NatsServer({
    name: "n1",
    directory: join(directory, "n1"),
    clientPort,
    monitorPort,
    sync: "always",
  });
  const clockFile = join(directory, "clock");
  const node = new AuthorityProcess({
    name: "a1",
    directory: join(directory, "a1"),
    url: `http://127.0.0.1:${httpPort}`,
    env: {
      ...clockEnvironment(clockFile),
      MANDATE_NATS_SERVERS: `127.0.0.1:${clientPort}`,
      MANDATE_NATS_MONITOR_URLS: nats.monitorUrl,
      MANDATE_HTTP_PORT: String(httpPort),
      MANDATE_REPLICAS: "1",
      MANDATE_STATE_DIR: join(directory, "a1"),
    },
  });
  const recorder = new Recorder(join(directory, "parts", "test.ndjson"), new RunClock(clockOrigin()));
  const kept = new Kept(node, recorder);
  try {
    await nats.start();
    await nats.waitReady();
    setClock(clockFile, 300_000);
    await kept.up();
    expect(await node.exited).toMatchObject({ code: 1 });
    await expect(node.waitReady(20_000)).rejects.toMatchObject({
      code: "PROCESS_EXITED",
      message: expect.stringContaining("the clock of"),
    });
    const ready = node.waitReady(30_000, { supervised: true });
    setClock(clockFile, 0);
    await ready;
    expect(kept.unexpectedEnds).toBeGreaterThan(0);
  } finally {
    await kept.down("SIGTERM");
    await nats.kill();
    recorder.close();
    await rm(directory, { recursive: true, force: true });
  }
});
