import { pino } from "pino";
import { MandateError } from "../core/errors.ts";
import { doDemoWork } from "../cli/demo-work.ts";
import { followTokenFile, type WorkerToken } from "../cli/worker-token.ts";
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
  readonly grant: WorkerToken;
}

/** Runs the worker of the demo until SIGTERM; answers the process's exit code: 1 when NATS or the authority refuses it. */
export async function runDemoWorker({ grant, ...options }: DemoWorkerOptions): Promise<number> {
  const log = pino({
    formatters: { level: (level) => ({ level }) },
    base: { worker: options.name },
    timestamp: pino.stdTimeFunctions.isoTime,
  });
  try {
    const token = grant.token === undefined ? {} : { token: grant.token };
    const worker = await runWorker({ ...options, ...token, handler: doDemoWork, log, graceMs: 1_000 });
    followTokenFile(worker, grant, { say: (text) => log.info(text) });
    log.info({ workerId: worker.workerId, concurrency: options.concurrency }, "the worker claims work");
    await worker.ended;
    return 0;
  } catch (thrown) {
    if (!(thrown instanceof MandateError)) throw thrown;
    log.error({ code: thrown.code, reason: thrown.message }, "the worker is refused");
    return 1;
  }
}
