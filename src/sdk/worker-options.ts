import { silentLog, type Log } from "../base/log.ts";
import { MandateError } from "../core/errors.ts";
import type { Labels, ResourceProfile, WorkerRuntimeKind } from "../core/worker/record.ts";
import { WAIT_MS_MAX } from "../wire/limits.ts";
import { parseShape } from "../wire/parse.ts";
import { claimNextRequest } from "../wire/requests.ts";
import { registerWorkerRequest } from "../wire/worker-requests.ts";
import { checkToken } from "./grant-token.ts";
import { brokenLoginRule, type NatsLogin } from "./nats-login.ts";
import type { ConnectionState } from "./work-connection.ts";
import type { Handler } from "./work-context.ts";
import { workerIdOf } from "./worker-identity.ts";

export interface WorkerOptions {
  /** NATS addresses, such as `nats://127.0.0.1:4222`. */
  readonly servers: readonly string[];
  readonly tenantId: string;
  readonly applicationId: string;
  /** Names the worker; its id is made of the three. Of processes that share it the one that started last has it: the others end. */
  readonly name: string;
  /** What the worker is, for whoever looks at the registry (contract 2.1). Default `process`. */
  readonly runtime?: WorkerRuntimeKind;
  /** The program's version, for the same. Default `0`. */
  readonly version?: string;
  /** What placement policies ask for (contract 2.3). */
  readonly labels?: Labels;
  /** Definitions that it runs. Default: any. */
  readonly workloadKinds?: readonly string[];
  /** What its machine offers. */
  readonly resourceProfile?: ResourceProfile;
  /** How often it is heard, ms; silent for three times as long, it is given no work. Default 10,000. */
  readonly heartbeatIntervalMs?: number;
  readonly capabilities?: readonly string[];
  /** How many workloads to run at once. Default 1. */
  readonly concurrency?: number;
  /** Length of a lease, ms: how soon the work of a worker that vanished goes to another. Default 30,000. */
  readonly leaseMs?: number;
  readonly handler: Handler;
  /** How long one request for work waits at the authority, ms. Default 5,000, and never more than a third of a lease. */
  readonly waitMs?: number;
  /** How long handlers may go on after {@link RunningWorker.stop} or SIGTERM, ms; `Infinity`: until they are done. Default 20,000. */
  readonly graceMs?: number;
  /** Whether SIGTERM and SIGINT stop the worker. Default true. A second signal then ends the process as usual. */
  readonly handleSignals?: boolean;
  readonly encoding?: "json" | "msgpack";
  /** Who the worker is to NATS. Absent: nobody, which is taken in open mode alone. */
  readonly login?: NatsLogin;
  /** The worker's grant, which goes with every call (contract 4.3), until {@link RunningWorker.useToken}. Not needed in open mode. */
  readonly token?: string;
  readonly log?: Log;
  /** Told when NATS is reached, when it is lost, and when it is back: once for each change. */
  readonly onState?: (state: ConnectionState) => void;
  /** Ends the attempt to connect, and later stops the worker. */
  readonly signal?: AbortSignal;
}

/** The options with every default in its place. */
export type WorkerSettings = Required<
  Omit<WorkerOptions, "login" | "token" | "signal" | "onState" | "servers" | "encoding">
> & {
  readonly workerId: string;
};

/**
 * Checks the options and fills in what is left out.
 *
 * @throws MandateError `WORKLOAD_INVALID`; details name the option.
 */
export function checkWorkerOptions(options: WorkerOptions): WorkerSettings {
  const { tenantId, applicationId, name } = options;
  const leaseMs = options.leaseMs ?? 30_000;
  const workerId = workerIdOf({ tenantId, applicationId, name });
  const waitMs = Math.round(Math.min(options.waitMs ?? 5_000, WAIT_MS_MAX, leaseMs / 3));
  const concurrency = options.concurrency ?? 1;
  const capabilities = [...(options.capabilities ?? [])];
  const scope = { tenantId, applicationId };
  const parsed = parseShape(claimNextRequest, { ...scope, workerId, capabilities, max: 1, waitMs, leaseMs });
  if (!parsed.ok) throw MandateError.of(parsed.error);
  const described = {
    runtime: options.runtime ?? "process",
    version: options.version ?? "0",
    labels: { ...options.labels },
    workloadKinds: [...(options.workloadKinds ?? [])],
    resourceProfile: { ...options.resourceProfile },
    heartbeatIntervalMs: options.heartbeatIntervalMs ?? 10_000,
  } as const;
  const registered = parseShape(registerWorkerRequest, { ...scope, name, concurrency: 1, ...described });
  if (!registered.ok) throw MandateError.of(registered.error);
  const refusal = (path: string, rule: string): MandateError =>
    new MandateError("WORKLOAD_INVALID", `${path} ${rule}`, {
      details: { paths: [path], issues: [{ path, message: rule }] },
    });
  if (!Number.isSafeInteger(concurrency) || concurrency < 1 || concurrency > 10_000)
    throw refusal("concurrency", "is not a whole number from 1 to 10,000");
  const { heartbeatIntervalMs } = described;
  if (!Number.isSafeInteger(heartbeatIntervalMs) || heartbeatIntervalMs < 100 || heartbeatIntervalMs > 3_600_000)
    throw refusal("heartbeatIntervalMs", "is not a whole number from 100 to 3,600,000");
  const graceMs = options.graceMs ?? 20_000;
  if (!(graceMs >= 0)) throw refusal("graceMs", "is no number of milliseconds from 0");
  if (options.servers.length === 0) throw refusal("servers", "names no server");
  const broken = brokenLoginRule(options.login ?? {});
  if (broken !== undefined) throw refusal(...broken);
  if (options.token !== undefined) checkToken(options.token);
  return {
    tenantId,
    applicationId,
    name,
    ...described,
    workerId,
    capabilities,
    concurrency,
    leaseMs,
    waitMs,
    handler: options.handler,
    graceMs,
    handleSignals: options.handleSignals ?? true,
    log: options.log ?? silentLog,
  };
}
