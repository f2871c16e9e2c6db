/**
 * Goal: what is deployed in containers is what the project starts and tests everywhere else.
 * Method: the files of the deployment are compared with the code that they mirror. The script that makes keys
 * is run. Needs no Docker.
 */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { NATS_SERVER_VERSION } from "../../cluster/nats-server-binary.ts";
import { renderAccounts, renderNatsConfig } from "../../cluster/nats-config.ts";
import { projectRoot } from "../../cluster/project-root.ts";
import { WAIT_MS_MAX } from "../../src/wire/limits.ts";
import { NATS_IMAGE } from "./docker.ts";

const execute = promisify(execFile);
const read = (name: string): string => readFileSync(join(projectRoot(), name), "utf8");

describe("the files of the deployment in containers", () => {
  it("tell the nats-servers the same as a local cluster is told, but for the addresses", () => {
    const local = renderNatsConfig({
      name: "$NATS_SERVER_NAME",
      clientPort: 4222,
      monitorPort: 8222,
      storeDirectory: "/data",
      cluster: { name: "mandate", routePort: 6222, routePorts: [6222, 6222, 6222] },
      sync: "always",
      storage: { fileBytesMax: 10 * 1024 ** 3 },
    }).replace('"$NATS_SERVER_NAME"', "$NATS_SERVER_NAME");
    const deployed = read("deploy/nats.conf")
      .replaceAll(/^#.*\n/gm, "")
      .replaceAll(/0\.0\.0\.0|nats-[123]/g, "127.0.0.1");
    expect(deployed).toBe(local);
  });

  it("tell the nats-servers of the secure profile the same, with who may do what, under TLS", () => {
    const keys = "/etc/nats/keys";
    const local = renderNatsConfig({
      name: "$NATS_SERVER_NAME",
      clientPort: 4222,
      monitorPort: 8222,
      storeDirectory: "/data",
      cluster: { name: "mandate", routePort: 6222, routePorts: [6222, 6222, 6222] },
      sync: "always",
      storage: { fileBytesMax: 10 * 1024 ** 3 },
      security: {
        accounts: [],
        tls: { certFile: `${keys}/server.pem`, keyFile: `${keys}/server.key`, caFile: `${keys}/ca.pem` },
      },
    }).replace('"$NATS_SERVER_NAME"', "$NATS_SERVER_NAME");
    const deployed = read("deploy/secure/nats.conf")
      .replaceAll(/^#.*\n/gm, "")
      .replaceAll(/0\.0\.0\.0|nats-[123]\.private/g, "127.0.0.1")
      .replace("$NATS_PRIVATE_MONITOR", '"127.0.0.1:8222"')
      .replace("$NATS_PRIVATE_ROUTE", '"127.0.0.1:6222"')
      .replace('include "keys/accounts.conf"', renderAccounts([]));
    expect(deployed).toBe(local);
  });

  it("give each container of the secure profile the keys that are made for it, and no other's", async () => {
    const folder = await mkdtemp(join(tmpdir(), "mandate-deploy-"));
    try {
      // Beside a copy of the script, which writes next to itself.
      const script = join(folder, "deploy", "secure", "make.mjs");
      await mkdir(dirname(script), { recursive: true });
      await cp(join(projectRoot(), "deploy", "secure", "make.mjs"), script);
      const profile = pathToFileURL(join(projectRoot(), "src", "secure", "profile.ts")).href;
      await writeFile(script, read("deploy/secure/make.mjs").replace("../../dist/src/secure/profile.js", profile));
      const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
      const run = (...args: readonly string[]) => execute(process.execPath, ["--import", tsx, script, ...args]);
      await run();
      const keys = join(folder, "deploy", "secure", "keys");
      const compose = read("docker-compose.secure.yml");
      const mounted = [...compose.matchAll(/- \.\/deploy\/secure\/keys\/(\S+?):\S+:ro$/gm)].map(
        ([, file]) => file ?? "",
      );
      expect(mounted.length).toBeGreaterThan(20);
      for (const file of mounted) expect([file, existsSync(join(keys, file))]).toEqual([file, true]);
      // The key that vouches for everything is nobody's, and each secret has one container, but for the demo's two workers.
      expect(mounted.filter((file) => file.startsWith("ca."))).toEqual([]);
      const secrets = mounted.filter((file) => /\.(?:seed|key)$/.test(file));
      expect(new Set(secrets).size).toBe(secrets.length);
      expect((await stat(keys)).mode & 0o077).toBe(0);
      expect((await stat(join(keys, "ca.key"))).mode & 0o077).toBe(0);
      const seed = await readFile(join(keys, "workers", "demo.shop.seed"), "utf8");
      await run("demo/shop", "acme/shop/w1");
      expect(await readFile(join(keys, "workers", "demo.shop.seed"), "utf8")).toBe(seed);
      expect(await readFile(join(keys, "nats", "accounts.conf"), "utf8")).toContain("_INBOX.acme.shop.w1.>");
      expect(existsSync(join(keys, "workers", "acme.shop.w1.seed"))).toBe(true);
      await expect(run("acme")).rejects.toMatchObject({ code: 2 });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it("keep the keys of the secure profile out of images and of the repository", () => {
    expect(read(".gitignore")).toContain("deploy/secure/keys/\n");
    expect(read(".dockerignore")).toContain("\ndeploy/secure/keys\n");
  });

  it("have HAProxy do the same in both profiles, but for TLS", () => {
    const plain = (name: string): string => read(name).replaceAll(/^(?: *#.*| *bind .*)\n/gm, "");
    expect(plain("deploy/secure/haproxy.cfg")).toBe(plain("deploy/haproxy.cfg"));
    expect(read("deploy/secure/haproxy.cfg")).toMatch(/^ {2}bind :7700 ssl crt \S+http\.pem /m);
  });

  it("name the nats-server that the project is tested with", () => {
    expect(NATS_IMAGE).toBe(`nats:${NATS_SERVER_VERSION}`);
    for (const file of ["docker-compose.yml", "docker-compose.secure.yml"])
      expect(read(file)).toContain(`image: ${NATS_IMAGE}\n`);
  });

  it("let HAProxy wait longer than the longest poll", () => {
    const timeouts = [...read("deploy/haproxy.cfg").matchAll(/^\s*timeout (?:client|server) (\d+)s$/gm)];
    expect(timeouts.map(([, seconds]) => Number(seconds) * 1_000 > WAIT_MS_MAX + 10_000)).toEqual([true, true]);
  });
});
