/**
 * Goal: a node that is given a certificate answers under TLS and no other way, and its certificate is replaced without a
 * restart or a lost connection; a bad one is not taken.
 * Method: a real server over an authority in memory; clients that know one authority of certificates or another; the
 * command itself where a signal is what counts.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { get } from "node:https";
import type { IncomingMessage } from "node:http";
import { connect as connectSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { Registry } from "prom-client";
import { afterEach, expect, test } from "vitest";
import { authorityProgram } from "../../cluster/authority-program.ts";
import { poll } from "../../cluster/poll.ts";
import { assert } from "../../src/base/assert.ts";
import { silentLog } from "../../src/base/log.ts";
import { startHttpServer, type HttpServer } from "../../src/http/server.ts";
import { connect } from "../../src/sdk/client.ts";
import { issueCertificate, makeCertificateAuthority, type Certificate } from "../../src/secure/certificates.ts";
import { createTestCluster } from "../../src/testing.ts";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

const from = Date.now();
const ca = makeCertificateAuthority({ commonName: "HTTP test", from, days: 2 });
const newCertificate = (commonName: string): Certificate =>
  issueCertificate(ca, { commonName, hosts: ["127.0.0.1"], use: "server", from, days: 1 });
const shown = ({ certificate, key }: Certificate): { cert: string; key: string } => ({ cert: certificate, key });

async function serve(certificate: Certificate): Promise<HttpServer> {
  const cluster = await createTestCluster({ nodes: 1, now: 10_000 });
  closers.push(() => cluster.close());
  const [authority] = cluster.nodes;
  assert(authority !== undefined, "a cluster has a node");
  const server = await startHttpServer({
    ...{ authority, log: silentLog, metrics: new Registry(), port: 0 },
    tls: shown(certificate),
  });
  closers.push(() => server.stop(0));
  return server;
}

/** Asks over TLS, believing certificates of this authority alone; the status. */
async function status(port: number, trusted: string): Promise<number | undefined> {
  const request = get({ host: "127.0.0.1", port, path: "/livez", ca: trusted, agent: false });
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}

/** The name in the certificate that a new connection is shown. */
async function nameShown(port: number): Promise<unknown> {
  const socket: TLSSocket = connectTls({ host: "127.0.0.1", port, ca: ca.certificate });
  await once(socket, "secureConnect");
  const name = socket.getPeerCertificate().subject.CN;
  socket.destroy();
  return name;
}

test("with a certificate a node answers under TLS, to who trusts it, and not otherwise", async () => {
  const server = await serve(newCertificate("first"));
  expect(server.url).toBe(`https://127.0.0.1:${server.port}`);
  expect(await status(server.port, ca.certificate)).toBe(200);
  const stranger = makeCertificateAuthority({ commonName: "HTTP test", from, days: 2 });
  await expect(status(server.port, stranger.certificate)).rejects.toThrow(/certificate/);
  const plain = connectSocket({ host: "127.0.0.1", port: server.port });
  closers.push(() => Promise.resolve(plain.destroy()));
  plain.on("error", () => undefined);
  let heard = "";
  plain.setEncoding("latin1").on("data", (text: string) => (heard += text));
  plain.write("GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  await once(plain, "close");
  expect(heard).not.toContain("HTTP/1.1 200");
});

test("a client that does not trust the certificate is told so, and that nothing happened", async () => {
  const server = await serve(newCertificate("first"));
  const client = connect({ url: server.url, subject: { kind: "human", id: "ada" }, deadlineMs: 1 });
  const target = { kind: "subject", subject: { kind: "agent", id: "helper" } } as const;
  await expect(client.revoke({ target })).rejects.toMatchObject({
    code: "AUTHORITY_NOT_READY",
    message: expect.stringMatching(/^no server could be reached: (UNABLE_TO_|SELF_SIGNED_)/) as string,
  });
});

test("another certificate is shown from the next connection on, and a bad one never", async () => {
  const server = await serve(newCertificate("first"));
  const kept: TLSSocket = connectTls({ host: "127.0.0.1", port: server.port, ca: ca.certificate });
  await once(kept, "secureConnect");
  closers.push(() => Promise.resolve(kept.destroy()));
  server.renewCertificate(shown(newCertificate("second")));
  expect(await nameShown(server.port)).toBe("second");
  const mixed = { cert: newCertificate("third").certificate, key: newCertificate("fourth").key };
  expect(() => server.renewCertificate(mixed)).toThrow();
  expect(await nameShown(server.port)).toBe("second");
  kept.write("GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
  const [answer] = (await once(kept, "data")) as [Buffer];
  expect(answer.toString("latin1")).toMatch(/^HTTP\/1\.1 200/);
});

test("a node reads its certificate again when it is told to", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mandate-tls-"));
  closers.push(() => rm(folder, { recursive: true, force: true }));
  const write = async ({ certificate, key }: Certificate): Promise<void> => {
    await writeFile(join(folder, "cert.pem"), certificate);
    await writeFile(join(folder, "key.pem"), key);
  };
  await write(newCertificate("first"));
  const { program, arguments: args } = authorityProgram();
  // Nothing listens there: a node answers HTTP all the same.
  const flags = ["--nats", "127.0.0.1:1", "--port", "0", "--tls-cert", join(folder, "cert.pem")];
  const child = spawn(program, [...args, "serve", ...flags, "--tls-key", join(folder, "key.pem")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  closers.push(() => Promise.resolve(child.kill("SIGKILL")));
  let output = "";
  child.stdout.on("data", (data: Buffer) => (output += data.toString()));
  const prints = (pattern: RegExp): Promise<RegExpExecArray | undefined> =>
    poll(() => pattern.exec(output) ?? undefined, { timeoutMs: 40_000 });
  const port = Number((await prints(/https:\/\/127\.0\.0\.1:(\d+)/))?.[1]);
  expect(await nameShown(port)).toBe("first");
  await write(newCertificate("second"));
  child.kill("SIGHUP");
  expect(await prints(/has read its certificate again/)).toBeDefined();
  expect(await nameShown(port)).toBe("second");
  await writeFile(join(folder, "cert.pem"), "nothing");
  child.kill("SIGHUP");
  expect(await prints(/the one before stays/)).toBeDefined();
  expect(await nameShown(port)).toBe("second");
});
