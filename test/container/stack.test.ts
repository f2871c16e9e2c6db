/**
 * Goal: docker-compose.yml gives a deployment that loses nothing it acknowledged and comes back by itself when containers
 * of it are stopped, killed and started again, and that can be reached from this machine only.
 * Method: all of it is started; requesters and an approver call through HAProxy without a break while faults happen one
 * after the other. In the end everything that was acknowledged must have its result.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findCompose, missingEngine } from "./docker.ts";
import { listAll, Requesters } from "./requesters.ts";
import { authorities, ComposeStack, natsServers, workers, type Ending, type Service } from "./stack.ts";

const REQUESTERS = 4;
const PROGRESS = 8;
/** How long a deployment of this size may be away after a fault, on a machine that does other things as well. */
const BACK_WITHIN_MS = 60_000;
const TEST_TIMEOUT_MS = 240_000;

const missing = await missingEngine();
const compose = missing === undefined ? await findCompose() : undefined;
if (missing === undefined && compose === undefined)
  process.stdout.write("the test of docker-compose.yml is skipped: there is no compose\n");

interface Fault {
  readonly what: string;
  readonly services: readonly Service[];
  readonly how: Ending;
  /** Whether the rest goes on meanwhile. */
  readonly survived: boolean;
}

const faults: readonly Fault[] = [
  { what: "an authority node is stopped", services: ["authority-1"], how: "stop", survived: true },
  { what: "an authority node is killed", services: ["authority-2"], how: "kill", survived: true },
  { what: "a worker is killed", services: ["worker-1"], how: "kill", survived: true },
  { what: "a nats-server is stopped", services: ["nats-1"], how: "stop", survived: true },
  { what: "a nats-server is killed", services: ["nats-2"], how: "kill", survived: true },
  { what: "all nats-servers are killed at once", services: natsServers, how: "kill", survived: false },
];

describe.skipIf(compose === undefined)("the deployment in containers", () => {
  let stack: ComposeStack;
  let requesters: Requesters;

  /** Fails with what the containers said last. */
  const expectInTime = async (happened: Promise<boolean>, what: string): Promise<void> => {
    if (!(await happened)) expect.fail(`not in time: ${what}\n${await stack.lastWords()}`);
  };

  beforeAll(async () => {
    stack = await ComposeStack.up(compose ?? "plugin");
    await expectInTime(stack.waitReady(90_000), "a node is ready");
    await expectInTime(stack.waitWhole(90_000), "the deployment is whole");
    requesters = new Requesters(stack.url, REQUESTERS);
  }, TEST_TIMEOUT_MS);

  afterAll(async () => {
    await stack?.down();
  }, 60_000);

  it("can be reached at one port of this machine's loopback only", async () => {
    const published = "{{range $port, $places := .HostConfig.PortBindings}}{{range $places}}{{.HostIp}} {{end}}{{end}}";
    expect(await stack.inspect("namespace", published)).toBe("127.0.0.1");
    for (const service of [...natsServers, ...workers, ...authorities, "haproxy"] as const)
      expect(await stack.inspect(service, published), service).toBe("");
  });

  it("runs nothing of the product as root, and asks each node whether it is ready", async () => {
    for (const service of ["namespace", ...authorities, ...workers] as const)
      expect(await stack.inspect(service, "{{.Config.User}}"), service).toBe("1000:1000");
    for (const service of authorities)
      expect(await stack.inspect(service, "{{.State.Health.Status}}"), service).toMatch(/healthy|starting/);
  });

  it("passes a head of a request on that is as large as a grant may make it, and refuses a larger one", async () => {
    const ask = (bytes: number): Promise<Response> =>
      fetch(`${stack.url}/readyz`, { headers: { authorization: `Bearer ${"a".repeat(bytes)}` } });
    expect((await ask(24 * 1024)).headers.get("mandate-mode")).toBe("open");
    expect((await ask(40 * 1024)).status).toBe(400);
  });

  it(
    "does work, with and without an approval",
    async () => {
      await expectInTime(requesters.progress(4 * PROGRESS, BACK_WITHIN_MS), "work is done");
    },
    TEST_TIMEOUT_MS,
  );

  it.each(faults)(
    "goes on when $what, and takes it back",
    async ({ services, how, survived }) => {
      await stack.end(services, how);
      if (survived) await expectInTime(requesters.progress(PROGRESS, BACK_WITHIN_MS), "work is done without it");
      await stack.start(services);
      await expectInTime(requesters.progress(PROGRESS, BACK_WITHIN_MS), "work is done again");
      await expectInTime(stack.waitWhole(BACK_WITHIN_MS), "the deployment is whole again");
      expect(requesters.surprises).toEqual([]);
    },
    TEST_TIMEOUT_MS,
  );

  it(
    "has a result for everything that it acknowledged, and told of each",
    async () => {
      await requesters.stop(BACK_WITHIN_MS);
      expect(requesters.surprises).toEqual([]);
      const { admitted, finished, announced } = requesters;
      expect(finished).toEqual(admitted);
      expect([...finished].filter((workloadId) => !announced.has(workloadId))).toEqual([]);
      const states = await listAll(stack.url);
      expect(new Set(states.keys())).toEqual(admitted);
      expect(new Set(states.values())).toEqual(new Set(["SUCCEEDED"]));
    },
    TEST_TIMEOUT_MS,
  );

  it("says in the product's own words when no node is ready", async () => {
    await stack.end(authorities, "kill");
    const answer = await fetch(`${stack.url}/v1/workloads`);
    expect(answer.status).toBe(503);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(await answer.json()).toMatchObject({
      status: 503,
      code: "AUTHORITY_NOT_READY",
      definite: true,
      retry: true,
    });
  });
});
