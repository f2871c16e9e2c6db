// Goal: a node is told exactly what is wrong with its configuration, and README tells exactly what it can be told.
// Method: texts in, values or named issues out; the README's table is compared with the settings both ways.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ConfigError, readConfig, settingRows, unknownVariables } from "../../src/config.ts";
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
