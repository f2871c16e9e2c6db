/**
 * Goal: what is deployed in containers is what the project starts and tests everywhere else.
 * Method: the files of the deployment are compared with the code that they mirror. Needs no Docker.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { NATS_SERVER_VERSION } from "../../cluster/nats-server-binary.ts";
import { renderNatsConfig } from "../../cluster/nats-config.ts";
import { projectRoot } from "../../cluster/project-root.ts";
import { WAIT_MS_MAX } from "../../src/wire/limits.ts";
import { NATS_IMAGE } from "./docker.ts";

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

  it("name the nats-server that the project is tested with", () => {
    expect(NATS_IMAGE).toBe(`nats:${NATS_SERVER_VERSION}`);
    expect(read("docker-compose.yml")).toContain(`image: ${NATS_IMAGE}\n`);
  });

  it("let HAProxy wait longer than the longest poll", () => {
    const timeouts = [...read("deploy/haproxy.cfg").matchAll(/^\s*timeout (?:client|server) (\d+)s$/gm)];
    expect(timeouts.map(([, seconds]) => Number(seconds) * 1_000 > WAIT_MS_MAX + 10_000)).toEqual([true, true]);
  });
});
