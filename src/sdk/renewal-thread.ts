import { parentPort, workerData } from "node:worker_threads";
import type { MessagePort } from "node:worker_threads";
import { assert } from "../base/assert.ts";
import { TrustTable } from "./lease-trust.ts";
import type { RenewalStart, ToRenewal } from "./renewal-messages.ts";
import { Renewals } from "./renewals.ts";
import { WorkConnection } from "./work-connection.ts";

/**
 * The program of a worker's second thread: it does nothing but renew leases, over a connection of its own, so that a
 * handler that keeps the first thread busy does not lose its work.
 */
async function run(port: MessagePort, start: RenewalStart): Promise<void> {
  const renewals = new Renewals({
    leaseMs: start.leaseMs,
    trust: new TrustTable(start.trust),
    tell: (message) => port.postMessage(message),
  });
  const ending = new AbortController();
  port.on("message", (message: ToRenewal) => {
    if (message.kind === "stop") ending.abort();
    else renewals.take(message);
  });
  const connection = await WorkConnection.open(start.connection, { signal: ending.signal });
  renewals.begin((verb, args, options) => connection.call(verb, args, options));
  port.postMessage({ kind: "ready" });
  if (!ending.signal.aborted)
    await new Promise<void>((resolve) => ending.signal.addEventListener("abort", () => resolve(), { once: true }));
  renewals.end();
  await connection.close();
  port.close();
}

assert(parentPort !== null, "this program runs as a thread");
void run(parentPort, workerData as RenewalStart);
