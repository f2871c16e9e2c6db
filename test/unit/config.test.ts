// Goal: a node is told exactly what is wrong with its configuration, and README tells exactly what it can be told.
// Method: texts in, values or named issues out; the README's table is compared with the settings both ways.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nkeys } from "@nats-io/nats-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  ConfigError,
  natsClientFlags,
  readConfig,
  readNatsClient,
  settingRows,
  unknownVariables,
} from "../../src/config.ts";
import { natsConnectionOf } from "../../src/node/nats-login.ts";
import { settings } from "../../src/settings.ts";

/** The issues of a configuration that can't be used. */
function issuesOf(environment: Record<string, string>, flags: Record<string, string> = {}): ConfigError["issues"] {
  try {
    readConfig(environment, flags);
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.issues;
    throw thrown;
  }
  return [];
}

describe("values", () => {
  test("without a word everything has a value but what is optional", () => {
    const { nodeId, ...config } = readConfig({});
    expect(nodeId).toMatch(/^[A-Za-z0-9._-]+-7700$/);
    expect(config).toMatchObject({
      natsServers: ["127.0.0.1:4222"],
      httpHost: "127.0.0.1",
      httpPort: 7700,
      epoch: "main",
      shards: 1,
      replicas: 3,
      storage: "file",
      sync: "always",
      allow: [],
    });
    expect(config.stateDirectory).toBeUndefined();
  });

  test("a flag wins over its variable, and an empty variable is none", () => {
    expect(readConfig({ MANDATE_HTTP_PORT: "1" }, { port: "2" }).httpPort).toBe(2);
    expect(readConfig({ MANDATE_HTTP_PORT: "" }).httpPort).toBe(7700);
  });

  test("a node with keys may listen anywhere, and one without on this machine alone", () => {
    const given = { MANDATE_HTTP_HOST: "0.0.0.0", MANDATE_KEYS: "keys" };
    expect(readConfig(given)).toMatchObject({ httpHost: "0.0.0.0", keys: "keys" });
    expect(() => readConfig({ ...given, MANDATE_KEYS: "" })).toThrow("MANDATE_HTTP_HOST");
  });

  test("server addresses lose their scheme and blanks", () => {
    expect(readConfig({ MANDATE_NATS_SERVERS: "nats://a:1, b.c:2 ,[::1]:3" }).natsServers).toEqual([
      "a:1",
      "b.c:2",
      "[::1]:3",
    ]);
  });
});

describe("what is wrong is named with variable or flag, value and rule", () => {
  test.each([
    ["MANDATE_HTTP_PORT", "65536"],
    ["MANDATE_HTTP_PORT", "-1"],
    ["MANDATE_HTTP_PORT", "1e3"],
    ["MANDATE_HTTP_PORT", " 80"],
    ["MANDATE_SHARDS", "0"],
    ["MANDATE_REPLICAS", "2"],
    ["MANDATE_STORAGE", "disk"],
    ["MANDATE_SYNC", "sometimes"],
    ["MANDATE_EPOCH", "a.b"],
    ["MANDATE_EPOCH", "x".repeat(33)],
    ["MANDATE_NODE_ID", "a b"],
    ["MANDATE_NATS_SERVERS", ","],
    ["MANDATE_NATS_SERVERS", "http://a:1"],
    ["MANDATE_NATS_MONITOR_URLS", "a:1"],
    ["MANDATE_ALLOW", "everything"],
    ["MANDATE_LOG_LEVEL", "loud"],
    ["MANDATE_CLOCK_SKEW_MAX_MS", "0"],
    ["MANDATE_PAYLOAD_BYTES_MAX", "9999999999"],
    ["MANDATE_SECRET_PREFIXES", "a"],
  ])("%s=%j", (variable, value) => {
    const [issue, ...others] = issuesOf({ [variable]: value });
    expect(others).toEqual([]);
    expect(issue).toMatchObject({ source: variable, value: JSON.stringify(value) });
    expect(issue?.rule).toMatch(/^must be /);
  });

  test("a flag is named as the flag", () => {
    expect(issuesOf({}, { shards: "many" })[0]?.source).toBe("--shards");
  });

  test("everything is told at once", () => {
    expect(issuesOf({ MANDATE_SHARDS: "0", MANDATE_REPLICAS: "2" }).map(({ source }) => source)).toEqual([
      "MANDATE_SHARDS",
      "MANDATE_REPLICAS",
    ]);
  });

  test("open mode listens on this machine alone", () => {
    expect(issuesOf({ MANDATE_HTTP_HOST: "0.0.0.0" })[0]).toMatchObject({
      source: "MANDATE_HTTP_HOST",
      value: "0.0.0.0",
    });
  });

  test("user and password come together, and not with a token", () => {
    expect(issuesOf({ MANDATE_NATS_USER: "u" })[0]?.source).toBe("MANDATE_NATS_USER");
    expect(issuesOf({ MANDATE_NATS_PASSWORD: "hunter2" })[0]?.source).toBe("MANDATE_NATS_PASSWORD");
    const both = { MANDATE_NATS_USER: "u", MANDATE_NATS_PASSWORD: "hunter2", MANDATE_NATS_TOKEN: "t0ps3cret" };
    expect(issuesOf(both)[0]?.source).toBe("MANDATE_NATS_TOKEN");
    expect(new ConfigError(issuesOf(both)).message).not.toMatch(/hunter2|t0ps3cret/);
  });

  test("a store in memory and a memory of it on disk exclude each other", () => {
    const issues = issuesOf({ MANDATE_STORAGE: "memory", MANDATE_STATE_DIR: "/tmp/x" });
    expect(issues[0]?.source).toBe("MANDATE_STATE_DIR");
  });
});

describe("files with keys and certificates", () => {
  let folder: string;
  const seed = new TextDecoder().decode(nkeys.createUser().getSeed());
  const write = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  };

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "mandate-config-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const fileVariables = Object.values(settings).flatMap((one) => ("file" in one ? [one.variable] : []));

  test("there are seven of them", () => expect(fileVariables).toHaveLength(7));

  test.each(fileVariables)("%s: one that is not there, or holds something else, is named", (variable) => {
    expect(issuesOf({ [variable]: join(folder, "absent") })[0]).toMatchObject({
      source: variable,
      rule: expect.stringContaining("ENOENT") as unknown,
    });
    const other = write("other", "hunter2");
    const [issue] = issuesOf({ [variable]: other });
    expect(issue).toMatchObject({ source: variable, rule: expect.stringMatching(/^must be a file that holds/) });
    expect(JSON.stringify(issue)).not.toContain("hunter2");
  });

  test("a key is read anew at every connection, and what it was counts while it can't be read", () => {
    const file = write("seed", `${seed}\n`);
    const { authenticator } = natsConnectionOf(readConfig({ MANDATE_NATS_NKEY_SEED_FILE: file }));
    const publicKey = (): unknown => {
      expect(typeof authenticator).toBe("function");
      return typeof authenticator === "function" ? (authenticator("nonce") as { nkey: string }).nkey : undefined;
    };
    const first = publicKey();
    expect(first).toMatch(/^U[A-Z2-7]{55}$/);
    write("seed", new TextDecoder().decode(nkeys.createUser().getSeed()));
    const second = publicKey();
    expect(second).not.toBe(first);
    rmSync(file);
    expect(publicKey()).toBe(second);
  });

  test("two proofs of who one is, or half a pair, are refused", () => {
    const file = write("seed", seed);
    const certificate = write("certificate", "-----BEGIN CERTIFICATE-----\n");
    expect(issuesOf({ MANDATE_NATS_NKEY_SEED_FILE: file, MANDATE_NATS_TOKEN: "t" })[0]?.rule).toMatch(/combined/);
    expect(issuesOf({ MANDATE_HTTP_TLS_CERT: certificate })[0]?.rule).toBe("needs MANDATE_HTTP_TLS_KEY");
    expect(issuesOf({ MANDATE_NATS_TLS_CERT: certificate })[0]?.rule).toBe("needs MANDATE_NATS_TLS_KEY");
  });

  test("a worker's process reads the same settings, and no others", () => {
    const file = write("seed", seed);
    const told = readNatsClient(
      { MANDATE_NATS_NKEY_SEED_FILE: file, MANDATE_SHARDS: "none" },
      { "nats-inbox": "_I.a" },
    );
    expect(told).toEqual({ natsNkeySeedFile: file, natsInboxPrefix: "_I.a" });
    expect(() => readNatsClient({}, { "nats-inbox": "_I.>" })).toThrow(/--nats-inbox/);
    expect(natsClientFlags).toContain("nats-tls-ca");
  });
});

test("variables that look like ours and are none are found", () => {
  expect(unknownVariables({ MANDATE_SHARD: "2", MANDATE_SHARDS: "2", PATH: "" })).toEqual(["MANDATE_SHARD"]);
});

test("no two settings share a variable or a flag", () => {
  const all = Object.values(settings);
  expect(new Set(all.map(({ variable }) => variable)).size).toBe(all.length);
  expect(new Set(all.map(({ flag }) => flag)).size).toBe(all.length);
});

test("README's table of settings is the settings, both ways", () => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const rows = readme.split("\n").filter((line) => line.startsWith("| `MANDATE_"));
  expect(rows).toEqual(
    settingRows().map(
      ([variable, flag, initial, doc]) =>
        `| \`${variable}\` | \`${flag}\` | ${initial === "" ? "" : `\`${initial}\``} | ${doc} |`,
    ),
  );
});
