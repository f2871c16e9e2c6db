// Goal: doctor's verdicts follow from what the servers say. Method: views of servers in, checks out.

import { expect, test } from "vitest";
import type { Check } from "../../src/doctor/check.ts";
import { standingFailures } from "../../src/doctor/doctor.ts";
import { checkMonitors, checkServers } from "../../src/doctor/server-checks.ts";
import type { MonitorView, ServerView } from "../../src/doctor/servers.ts";

const server: ServerView = {
  address: "127.0.0.1:1",
  name: "n1",
  version: "2.15.1",
  jetstream: true,
  maxPayloadBytes: 8 * 1024 * 1024,
};
const monitor: MonitorView = {
  url: "http://127.0.0.1:2",
  name: "n1",
  syncAlways: true,
  cluster: { peers: 2, connected: 2 },
  clockOffsetMs: 3,
  clockUncertaintyMs: 1,
  storageBytesMax: 1000,
  storageBytesUsed: 100,
};
const expected = { sync: "always", storage: "file", clockSkewMaxMs: 2000 } as const;

const verdicts = (checks: readonly Check[]): Record<string, string> =>
  Object.fromEntries(checks.map(({ name, verdict }) => [name, verdict]));

test("servers and monitors as they should be give no word of warning", () => {
  const checks = [...checkServers([server]), ...checkMonitors([monitor], expected)];
  expect(new Set(checks.map(({ verdict }) => verdict))).toEqual(new Set(["ok"]));
});

test.each([
  ["2.15.0", "failure"],
  ["2.9.10", "failure"],
  ["2.15.1", "ok"],
  ["2.15.10", "ok"],
  ["2.16.0-RC.1", "ok"],
  ["3.0.0", "ok"],
  ["", "failure"],
])("server version %j is a matter of %s", (version, verdict) => {
  expect(verdicts(checkServers([server, { ...server, version }]))["server-version"]).toBe(verdict);
});

test("a server that is away is a warning while others answer, and a failure when none does", () => {
  const away = { address: "127.0.0.1:3", problem: "refused" };
  expect(verdicts(checkServers([server, away]))["servers"]).toBe("warning");
  expect(checkServers([away])).toEqual([
    expect.objectContaining({
      name: "servers",
      verdict: "failure",
      explanation: expect.stringContaining("127.0.0.1:3"),
    }),
  ]);
});

test("JetStream off and messages too small are failures", () => {
  const checks = verdicts(checkServers([{ ...server, jetstream: false, maxPayloadBytes: 1_048_576 }]));
  expect(checks).toMatchObject({ jetstream: "failure", "max-payload": "failure" });
});

test("what only monitoring tells is a warning when no monitoring answers", () => {
  expect(verdicts(checkMonitors([], expected))).toEqual({
    routes: "warning",
    sync: "warning",
    clock: "warning",
    "free-space": "warning",
  });
});

test("what holds for the servers that were seen is a warning while others were not", () => {
  const warned = { routes: "warning", sync: "warning", clock: "warning", "free-space": "warning" };
  const silent = { address: "http://127.0.0.1:4", problem: "refused" };
  expect(verdicts(checkMonitors([monitor, silent], expected))).toEqual(warned);
  const servers = ["127.0.0.1:1", "127.0.0.1:5"];
  expect(verdicts(checkMonitors([monitor], { ...expected, servers }))).toEqual(warned);
  expect(verdicts(checkMonitors([{ ...monitor, syncAlways: false }, silent], expected))["sync"]).toBe("failure");
  expect(verdicts(checkMonitors([monitor, monitor], { ...expected, servers }))["sync"]).toBe("ok");
});

test("lazy disk writes are a failure where they are not expected, a warning where they are, no matter in memory", () => {
  const lazy = [{ ...monitor, syncAlways: false }];
  expect(verdicts(checkMonitors(lazy, expected))["sync"]).toBe("failure");
  expect(verdicts(checkMonitors(lazy, { ...expected, sync: "any" }))["sync"]).toBe("warning");
  expect(verdicts(checkMonitors(lazy, { ...expected, storage: "memory" }))["sync"]).toBe("skipped");
});

test("a clock is judged by what it surely differs", () => {
  const far = (clockOffsetMs: number, clockUncertaintyMs: number): string | undefined =>
    verdicts(checkMonitors([{ ...monitor, clockOffsetMs, clockUncertaintyMs }], expected))["clock"];
  expect(far(-2_500, 100)).toBe("failure");
  expect(far(2_500, 600)).toBe("ok");
});

test("a route that is down is a warning: a node must start while a server is away", () => {
  const cut = [{ ...monitor, cluster: { peers: 2, connected: 1 } }];
  expect(verdicts(checkMonitors(cut, expected))["routes"]).toBe("warning");
});

test("storage that fills up is a warning, a full one a failure", () => {
  const used = (storageBytesUsed: number): string | undefined =>
    verdicts(checkMonitors([{ ...monitor, storageBytesUsed }], expected))["free-space"];
  expect([used(800), used(900), used(990)]).toEqual(["ok", "warning", "failure"]);
});

test("a failure stands unless it is allowed by its name", () => {
  const checks = checkMonitors([{ ...monitor, syncAlways: false }], expected);
  expect(standingFailures(checks, []).map(({ name }) => name)).toEqual(["sync"]);
  expect(standingFailures(checks, ["clock"]).map(({ name }) => name)).toEqual(["sync"]);
  expect(standingFailures(checks, ["sync"])).toEqual([]);
});
