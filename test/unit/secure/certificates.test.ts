/**
 * Goal: certificates that this program makes are taken by programs that are strict about them, and vouch for exactly what
 * they name.
 * Method: they are read back by Node's parser, verified against their authority and others, and used for a connection in
 * which both sides ask for the other's; nats-server's own strictness is met in the integration test.
 */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, createServer, type TLSSocket } from "node:tls";
import { describe, expect, test } from "vitest";
import { issueCertificate, makeCertificateAuthority } from "../../../src/secure/certificates.ts";
import { identifier, instant, integer, octets } from "../../../src/secure/der.ts";
import { makeProfile } from "../../../src/secure/profile.ts";

const from = Date.now();
const authority = makeCertificateAuthority({ commonName: "Test authority", from, days: 10 });
const hosts = ["nats-1", "127.0.0.1", "2001:db8::17", "::1"];
const server = issueCertificate(authority, { commonName: "nats-1", hosts, use: "peer", from, days: 5 });
const client = issueCertificate(authority, { commonName: "client", hosts: [], use: "client", from, days: 5 });

describe("an encoding", () => {
  test.each([
    ["a number whose first bit is set", integer(Uint8Array.of(0x80)), "02020080"],
    ["a number with zeros before it", integer(Uint8Array.of(0, 0, 1)), "020101"],
    ["nothing", integer(Uint8Array.of()), "020100"],
    ["an identifier with long arcs", identifier("1.2.840.10045.4.3.2"), "06082a8648ce3d040302"],
    ["a year of two digits", instant(Date.UTC(2049, 11, 31, 23, 59, 59)), "170d3439313233313233353935395a"],
    ["a year of four", instant(Date.UTC(2050, 0, 1)), "180f32303530303130313030303030305a"],
  ])("of %s is the one that there is", (_name, encoded, hex) => expect(encoded.toString("hex")).toBe(hex));

  test.each([
    [127, "047f"],
    [128, "048180"],
    [256, "04820100"],
    [70_000, "0483011170"],
  ])("of %i bytes begins with their number", (length, hex) =>
    expect(
      octets(new Uint8Array(length))
        .subarray(0, hex.length / 2)
        .toString("hex"),
    ).toBe(hex),
  );
});

describe("a certificate", () => {
  const parsed = new X509Certificate(server.certificate);
  const root = new X509Certificate(authority.certificate);

  test("is vouched for by its authority and by no other", () => {
    const other = makeCertificateAuthority({ commonName: "Test authority", from, days: 10 });
    expect(parsed.verify(root.publicKey)).toBe(true);
    expect(parsed.checkIssued(root)).toBe(true);
    expect(parsed.verify(new X509Certificate(other.certificate).publicKey)).toBe(false);
    expect(root.ca).toBe(true);
    expect(parsed.ca).toBe(false);
  });

  test("names its hosts, its uses and its time", () => {
    for (const host of ["127.0.0.1", "::1", "2001:db8::17"]) expect(parsed.checkIP(host)).toBe(host);
    expect(parsed.checkHost("nats-1")).toBe("nats-1");
    expect(parsed.checkHost("nats-2")).toBeUndefined();
    expect(parsed.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
    expect(new X509Certificate(client.certificate).keyUsage).toEqual(["1.3.6.1.5.5.7.3.2"]);
    const alone = issueCertificate(authority, { commonName: "x", hosts, use: "server", from, days: 5 });
    expect(new X509Certificate(alone.certificate).keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
    expect(Date.parse(parsed.validTo) - Math.floor(from / 1_000) * 1_000).toBe(5 * 86_400_000);
    expect(Date.parse(parsed.validFrom)).toBeLessThan(from);
    expect(parsed.serialNumber).not.toBe(new X509Certificate(client.certificate).serialNumber);
  });

  test("carries a connection whose two ends verify each other", async () => {
    const listener = createServer({
      cert: server.certificate,
      key: server.key,
      ca: authority.certificate,
      requestCert: true,
    });
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    const { port } = listener.address() as AddressInfo;
    const [[accepted], socket] = await Promise.all([
      once(listener, "secureConnection") as Promise<[TLSSocket]>,
      (async () => {
        const made = connect({
          ...{ port, host: "127.0.0.1", ca: authority.certificate },
          ...{ cert: client.certificate, key: client.key },
        });
        await once(made, "secureConnect");
        return made;
      })(),
    ]);
    expect([accepted.authorized, socket.authorized]).toEqual([true, true]);
    socket.destroy();
    accepted.destroy();
    listener.close();
  });
});

describe("the keys of a deployment", () => {
  test("let what answers HTTP be no server of NATS, whose route port asks for a client's certificate", async () => {
    const directory = await mkdtemp(join(tmpdir(), "mandate-profile-"));
    try {
      const profile = await makeProfile({
        ...{ directory, epoch: "main", shards: 1, now: from, nodes: ["n1"], workers: [], httpHosts: ["localhost"] },
        servers: [{ name: "nats-1", hosts: ["nats-1"] }],
      });
      const usesOf = async (path: string | undefined) => new X509Certificate(await readFile(path ?? "")).keyUsage;
      expect(await usesOf(profile.http.certFile)).toEqual(["1.3.6.1.5.5.7.3.1"]);
      expect(await usesOf(profile.tls.get("nats-1")?.certFile)).toContain("1.3.6.1.5.5.7.3.2");
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});
