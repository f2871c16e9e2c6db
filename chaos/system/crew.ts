import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Link } from "../network/link.ts";
import { WorkTap } from "../network/nats-tap.ts";
import type { Recorder } from "../recorder.ts";
import type { WorkerSetting } from "../workers/setting.ts";
import { Kept } from "./kept.ts";
import type { NatsRing } from "./nats-ring.ts";
import { clockEnvironment, setClock } from "./nodes.ts";
import { Program } from "./program.ts";
import { APPLICATIONS, CREW_CAPABILITIES, lengths, RAW_CAPABILITY, TENANT } from "./setting.ts";
import type { Tenant } from "./tenants.ts";

/** A worker process, kept running. */
export interface ChaosWorker {
  readonly name: string;
  readonly kept: Kept;
  readonly links: readonly Link[];
  readonly clockFile: string;
  readonly logPath: string;
}

type WorkerPlan = Pick<
  WorkerSetting,
  "name" | "kind" | "applicationId" | "capabilities" | "concurrency" | "encoding" | "finishing" | "workerName"
> & { readonly tenantId?: string };

const [ALPHA, BETA] = APPLICATIONS;

/** The workers of a run: most through the SDK, in either notation, and one through the legacy client. */
const plans: readonly WorkerPlan[] = [
  sdk("w1", ALPHA, { capabilities: ["gpu"], concurrency: 4 }),
  sdk("w2", ALPHA, { concurrency: 3, encoding: "msgpack" }),
  sdk("w3", BETA, { capabilities: ["gpu"], concurrency: 4 }),
  { ...sdk("w4", ALPHA, { concurrency: 2 }), kind: "legacy" },
];

/** Those that bring everything to its end when the faults are over. */
const finishers: readonly WorkerPlan[] = APPLICATIONS.map((applicationId) =>
  sdk(`f-${applicationId}`, applicationId, {
    capabilities: ["gpu", RAW_CAPABILITY, ...CREW_CAPABILITIES, "crowd", "another"],
    concurrency: 16,
    finishing: true,
  }),
);

/** Workers of each tenant, of equal names; a mark is in the name of their process alone, which is in all that they hand in. */
function ofTenants(tenants: readonly Tenant[], finishing: boolean): readonly WorkerPlan[] {
  return tenants.flatMap(({ tenantId, mark }) =>
    APPLICATIONS.map((applicationId, index) => ({
      ...sdk(`${finishing ? "f" : "w"}-${tenantId}-${applicationId}-${mark}`, applicationId, {
        capabilities: finishing ? ["gpu", RAW_CAPABILITY] : ["gpu"],
        concurrency: finishing ? 16 : 3,
        encoding: index === 0 ? "json" : "msgpack",
        finishing,
      }),
      tenantId,
      workerName: finishing ? "finisher" : "press",
    })),
  );
}

function sdk(name: string, applicationId: string, rest: Partial<WorkerPlan>): WorkerPlan {
  const usual = { capabilities: [], concurrency: 1, encoding: "json", finishing: false } as const;
  return { name, kind: "sdk", applicationId, ...usual, ...rest };
}

export interface CrewOptions {
  readonly directory: string;
  /** Where each process writes down what it sees. */
  readonly parts: string;
  readonly ring: NatsRing;
  readonly recorder: Recorder;
  /** In secure mode: who there is, and the folder of whoever issues their grants. */
  readonly secure?: { readonly tenants: readonly Tenant[]; readonly folder: string } | undefined;
}

async function makeWorker(plan: WorkerPlan, options: CrewOptions): Promise<ChaosWorker> {
  const { name } = plan;
  const directory = join(options.directory, name);
  const clockFile = join(directory, "clock");
  await mkdir(directory, { recursive: true });
  setClock(clockFile, 0);
  const links = await options.ring.linksFor(name, new WorkTap(options.recorder, name));
  const setting: WorkerSetting = {
    tenantId: TENANT,
    ...plan,
    ...(options.secure === undefined ? {} : { issuer: options.secure.folder }),
    servers: links.map((link) => `127.0.0.1:${link.port}`),
    leaseMs: lengths.leaseMs,
    record: join(options.parts, `${name}.ndjson`),
    clock: options.recorder.clock.origin,
  };
  const file = join(import.meta.dirname, "..", "workers", `${plan.kind}-worker.ts`);
  const program = new Program({ name, directory, file, setting, env: clockEnvironment(clockFile) });
  return { name, kept: new Kept(program, options.recorder), links, clockFile, logPath: program.logPath };
}

/** The worker processes of a run. */
export class Crew {
  readonly workers: readonly ChaosWorker[];
  readonly finishers: readonly ChaosWorker[];

  private constructor(workers: readonly ChaosWorker[], lastOnes: readonly ChaosWorker[]) {
    this.workers = workers;
    this.finishers = lastOnes;
  }

  /** Starts the workers; the finishers wait for {@link finish}. */
  static async start(options: CrewOptions): Promise<Crew> {
    const make = (list: readonly WorkerPlan[]): Promise<readonly ChaosWorker[]> =>
      Promise.all(list.map((plan) => makeWorker(plan, options)));
    const { secure } = options;
    const crew =
      secure === undefined
        ? new Crew(await make(plans), await make(finishers))
        : new Crew(await make(ofTenants(secure.tenants, false)), await make(ofTenants(secure.tenants, true)));
    await Promise.all(crew.workers.map(({ kept }) => kept.up()));
    return crew;
  }

  /** Starts those that take whatever is left. */
  async finish(): Promise<void> {
    await Promise.all(this.finishers.map(({ kept }) => kept.up()));
  }

  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    const all = [...this.workers, ...this.finishers];
    await Promise.all(all.map(({ kept }) => kept.down(signal)));
    await Promise.all(all.flatMap(({ links }) => links).map((link) => link.close()));
  }
}
