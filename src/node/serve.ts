import { pino } from "pino";
import type { Log } from "../base/log.ts";
import { unknownVariables, type Config } from "../config.ts";
import { KeyRingError } from "../grants/key-ring.ts";
import { NodeRefusal } from "./node-error.ts";
import { Node } from "./node.ts";

const makeLog = (config: Config): Log =>
  pino({
    level: config.logLevel,
    // Every line says in which mode the node runs (contract 4.3).
    base: { node: config.nodeId, mode: config.keys === undefined ? "open" : "secure" },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level) => ({ level }) },
  });

/** Fulfilled with the first signal to end; the second ends the process at once. */
function firstSignal(log: Log): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let seen = false;
    for (const signal of ["SIGTERM", "SIGINT"] as const)
      process.on(signal, () => {
        if (seen) {
          log.warn({ signal }, "second signal: leaving at once");
          process.exit(1);
        }
        seen = true;
        resolve(signal);
      });
  });
}

function leaveOnBugs(log: Log): void {
  const leave = (what: string) => (thrown: unknown) => {
    log.error(thrown instanceof Error ? { err: thrown } : { thrown: String(thrown) }, what);
    process.exit(1);
  };
  process.on("uncaughtException", leave("uncaught exception: the node leaves, and what it had claimed is recovered"));
  process.on("unhandledRejection", leave("unhandled rejection: the node leaves, and what it had claimed is recovered"));
}

/** Runs one authority node until it is told to end; answers the process's exit code. */
export async function serve(config: Config, version: string): Promise<number> {
  const log = makeLog(config);
  leaveOnBugs(log);
  const signalled = firstSignal(log);
  const unknown = unknownVariables(process.env);
  if (unknown.length > 0) log.warn({ variables: unknown }, "these variables look like settings and are none");
  log.info({ version, servers: config.natsServers, epoch: config.epoch }, "the node starts");
  let node: Node;
  try {
    node = await Node.listen({ config, log, version });
  } catch (thrown) {
    if (thrown instanceof KeyRingError) {
      log.error({ reason: thrown.message }, "the keys that grants are verified with are not good");
      return 1;
    }
    const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unknown";
    log.error({ host: config.httpHost, port: config.httpPort, code }, "HTTP can't listen there");
    return 1;
  }
  // An operator who does not trust a node's view has it built anew.
  process.on("SIGUSR2", () => void node.resync());
  process.on("SIGHUP", () => {
    node.renewCertificate();
    node.renewKeys();
  });
  const running = node.run().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  const first = await Promise.race([signalled, running]);
  // It runs: now only a signal ends it.
  if (first === undefined) await signalled;
  if (first !== undefined && typeof first !== "string") {
    log.error(first instanceof NodeRefusal ? { reason: first.message } : { err: first }, "the node can't start");
    await node.stop();
    return 1;
  }
  await node.stop();
  return 0;
}
