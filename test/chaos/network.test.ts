/**
 * Goal: the network that chaos runs go through does what a fault says and nothing else, and the record of the calls that
 * pass is what their callers saw.
 * Method: links before small servers on this machine; streams of frames cut at random places.
 */
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { AddressInfo, Server, Socket } from "node:net";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FrameReader } from "../../chaos/network/nats-frames.ts";
import { Link } from "../../chaos/network/link.ts";
import { WorkTap } from "../../chaos/network/nats-tap.ts";
import { mergeParts } from "../../chaos/parts.ts";
import { Recorder } from "../../chaos/recorder.ts";
import { clockOrigin, RunClock } from "../../chaos/run-clock.ts";

const frames = [
  'INFO {"server_id":"x"}\r\n',
  "PING\r\n",
  "PUB mandate.v1.t.a.work.next _INBOX.1 2\r\n{}\r\n",
  "HPUB s _INBOX.2 14 16\r\nNATS/1.0\r\n\r\n\r\nab\r\n",
  "MSG _INBOX.1 7 0\r\n\r\n",
  "HMSG _INBOX.2 7 _R 22 30\r\nNATS/1.0 503\r\nA: b\r\n\r\n....\r\nxy\r\n",
];

describe("the frame reader", () => {
  it("finds the same frames wherever the stream is cut", () => {
    const stream = Buffer.from(frames.join(""));
    fc.assert(
      fc.property(fc.array(fc.nat(stream.length), { maxLength: 12 }), (cuts) => {
        const reader = new FrameReader();
        const places = [0, ...cuts.toSorted((left, right) => left - right), stream.length];
        const found = places.slice(1).flatMap((end, index) => reader.push(stream.subarray(places[index] ?? 0, end)));
        expect(found.map(({ bytes }) => bytes.toString())).toEqual(frames);
        expect(found.map(({ subject }) => subject)).toEqual([
          "",
          "",
          "mandate.v1.t.a.work.next",
          "s",
          "_INBOX.1",
          "_INBOX.2",
        ]);
        expect(found.map(({ reply }) => reply)).toEqual(["", "", "_INBOX.1", "_INBOX.2", "", "_R"]);
      }),
    );
  });
});

describe("a link", () => {
  let server: Server;
  let served: Socket[];
  let link: Link;
  let client: Socket;
  let received: string;

  async function open(tap?: WorkTap): Promise<void> {
    const target = (server.address() as AddressInfo).port;
    link = await Link.start({ name: "a>b", target, random: () => 0.5, ...(tap === undefined ? {} : { tap }) });
    client = connect({ port: link.port, host: "127.0.0.1" });
    received = "";
    client.on("data", (bytes: Buffer) => (received += bytes.toString()));
    client.on("error", () => undefined);
    await expect.poll(() => served.length).toBe(1);
  }

  beforeEach(async () => {
    served = [];
    server = createServer((socket) => {
      served.push(socket);
      socket.on("error", () => undefined);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });

  afterEach(async () => {
    await link.close();
    client.destroy();
    server.close();
    await once(server, "close");
  });

  it("holds one direction, lets the other pass, and gives what it held when it heals", async () => {
    await open();
    link.shape({ toClient: { passage: "hold" } });
    served[0]?.write("held");
    let arrived = "";
    served[0]?.on("data", (bytes: Buffer) => (arrived += bytes.toString()));
    client.write("passes");
    await expect.poll(() => arrived).toBe("passes");
    expect(received).toBe("");
    link.heal();
    await expect.poll(() => received).toBe("held");
    expect(client.destroyed).toBe(false);
  });

  it("lets answers and deliveries come twice, and never what a worker asks", async () => {
    const directory = mkdtempSync(join(tmpdir(), "mandate-twice-"));
    const recorder = new Recorder(join(directory, "twice.ndjson"), new RunClock(clockOrigin()));
    try {
      await open(new WorkTap(recorder, "a"));
      link.shape({ toClient: { repetition: 1 } });
      const answer = "MSG _INBOX.1 7 2\r\nok\r\n";
      const asked = "MSG mandate.v1.t.a.work.next 1 _INBOX.9 2\r\n{}\r\n";
      served[0]?.write(asked + answer);
      await expect.poll(() => received).toBe(asked + answer + answer);
    } finally {
      recorder.close();
      rmSync(directory, { recursive: true, force: true });
    }
  });

  it("keeps the order of what it delays", async () => {
    await open();
    link.shape({ toClient: { delayMs: 20, jitterMs: 40 } });
    for (let index = 0; index < 20; index++) served[0]?.write(`${index},`);
    await expect.poll(() => received.split(",").length).toBe(21);
    expect(received).toBe(`${Array.from({ length: 20 }, (_, index) => index).join(",")},`);
  });

  it("resets a connection that lost bytes when it heals", async () => {
    await open();
    const closed = new Promise((resolve) => client.on("close", resolve));
    link.shape({ toClient: { passage: "drop" } });
    served[0]?.write("lost");
    client.write("x");
    await once(served[0] ?? server, "data");
    link.heal();
    await closed;
    expect(received).toBe("");
  });

  it("does not tell of an end that the network holds back", async () => {
    await open();
    let ended = false;
    client.on("end", () => (ended = true));
    link.shape({ toClient: { passage: "hold" } });
    served[0]?.end("last");
    client.write("x");
    await once(served[0] ?? server, "data");
    expect(ended).toBe(false);
    link.heal();
    await expect.poll(() => ended).toBe(true);
    expect(received).toBe("last");
  });

  it("loses whole messages and records what the caller saw of each call", async () => {
    const directory = mkdtempSync(join(tmpdir(), "chaos-network-"));
    try {
      const file = join(directory, "part.ndjson");
      await open(new WorkTap(new Recorder(file, new RunClock(clockOrigin())), "w1"));
      let arrived = "";
      served[0]?.on("data", (bytes: Buffer) => (arrived += bytes.toString()));
      const ask = (reply: string): string => `PUB mandate.v1.t.a.work.start ${reply} 17\r\n{"requestId":"r"}\r\n`;
      client.write(ask("_INBOX.1"));
      client.write(ask("_INBOX.2"));
      await expect.poll(() => arrived).toBe(ask("_INBOX.1") + ask("_INBOX.2"));
      link.shape({ toClient: { loss: 1 } });
      served[0]?.write("MSG _INBOX.1 1 2\r\n{}\r\nPING\r\n");
      await expect.poll(() => received).toBe("PING\r\n");
      link.heal();
      const refusal = 'NATS/1.0\r\nNats-Service-Error: WORKLOAD_STALE_FENCE\r\n\r\n{"definite":true}';
      served[0]?.write(`HMSG _INBOX.2 1 54 71\r\n${refusal}\r\n`);
      await expect.poll(() => readFileSync(file, "utf8").split("\n").length).toBe(4);
      const calls = await mergeParts(directory, 5);
      expect(calls).toMatchObject([
        { id: 1, caller: "w1", call: "start", requestId: "r", outcome: { kind: "unknown" }, endedAt: 5 },
        { id: 2, outcome: { kind: "refused", code: "WORKLOAD_STALE_FENCE", definite: true } },
      ]);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
