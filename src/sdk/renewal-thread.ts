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
  let token: string | undefined;
  let connection: WorkConnection | undefined;
  port.on("message", (message: ToRenewal) => {
    if (message.kind === "stop") ending.abort();
    else if (message.kind === "token") {
      token = message.token;
      connection?.useToken(token);
    } else renewals.take(message);
  });
  const opened = await WorkConnection.open(start.connection, { signal: ending.signal });
  connection = opened;
  if (token !== undefined) opened.useToken(token);
  renewals.begin((verb, args, options) => opened.call(verb, args, options));
  port.postMessage({ kind: "ready" });
  if (!ending.signal.aborted)
    await new Promise<void>((resolve) => ending.signal.addEventListener("abort", () => resolve(), { once: true }));
  renewals.end();
  await opened.close();
  port.close();
}

assert(parentPort !== null, "this program runs as a thread");
void run(parentPort, workerData as RenewalStart);
