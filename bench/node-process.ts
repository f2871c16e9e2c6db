/** One authority node, told by its environment as `mandate serve` is. It says where it answers, and ends with its parent. */
import { randomBytes } from "node:crypto";
import { connect } from "@nats-io/transport-node";
import { Counter, Registry } from "prom-client";
import { silentLog } from "../src/base/log.ts";
import { Authority } from "../src/authority/authority.ts";
import { readConfig } from "../src/config.ts";
import { startHttpServer } from "../src/http/server.ts";
import { startWorkerService } from "../src/nats/worker-service.ts";
import { openJetstreamStore } from "../src/store/jetstream/jetstream-store.ts";

const config = readConfig(process.env);
const metrics = new Registry();
const commits = new Counter({
  name: "mandate_commits_total",
  help: "Commits by action and outcome.",
  labelNames: ["action", "outcome"],
  registers: [metrics],
});
const store = await openJetstreamStore({
  servers: config.natsServers,
  epoch: config.epoch,
  shards: config.shards,
  replicas: config.replicas,
  storage: config.storage,
  create: false,
  clientId: config.nodeId,
});
const authority = new Authority({
  store,
  nodeId: config.nodeId,
  nonce: randomBytes(4).toString("hex"),
  log: silentLog,
  onCommit: (action, outcome) => commits.inc({ action, outcome }),
});
authority.open();
const http = await startHttpServer({ authority, log: silentLog, metrics, port: config.httpPort });
const nats = await connect({
  servers: config.natsServers,
  noAsyncTraces: true,
  name: `mandate ${config.nodeId} workers`,
});
const service = await startWorkerService({ connection: nats, authority, log: silentLog, metrics });

async function stop(): Promise<void> {
  await service.stop(1000);
  await http.stop(1000);
  await authority.close();
  await nats.close();
  await store.close();
}

process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpuMs: (user + system) / 1000, heapBytes: process.memoryUsage().heapUsed });
});
process.on("disconnect", () => void stop().then(() => process.exit(0)));
process.send?.({ url: http.url });
