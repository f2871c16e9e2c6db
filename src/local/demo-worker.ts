import { pino } from "pino";
import { MandateError } from "../core/errors.ts";
import { doDemoWork } from "../cli/demo-work.ts";
import type { NatsLogin } from "../sdk/nats-login.ts";
import { runWorker } from "../sdk/worker.ts";

export interface DemoWorkerOptions {
  readonly servers: readonly string[];
  readonly tenantId: string;
  readonly applicationId: string;
  readonly name: string;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly login: NatsLogin;
  /** The worker's grant; none in open mode. */
  readonly token?: string;
}

/** Runs the worker of the demo until SIGTERM; answers the process's exit code: 1 when NATS or the authority refuses it. */
export async function runDemoWorker(options: DemoWorkerOptions): Promise<number> {
  const log = pino({
    formatters: { level: (level) => ({ level }) },
    base: { worker: options.name },
    timestamp: pino.stdTimeFunctions.isoTime,
  });
  try {
    const worker = await runWorker({ ...options, handler: doDemoWork, log, graceMs: 1_000 });
    log.info({ workerId: worker.workerId, concurrency: options.concurrency }, "the worker claims work");
    await worker.ended;
    return 0;
  } catch (thrown) {
    if (!(thrown instanceof MandateError)) throw thrown;
    log.error({ code: thrown.code, reason: thrown.message }, "the worker is refused");
    return 1;
  }
}
