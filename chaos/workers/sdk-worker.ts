/** A worker process through the SDK: claims, does what the input says, and writes down what it was handed and when. */
import { runWorker } from "../../src/sdk/worker.ts";
import { workerIdOf } from "../../src/sdk/worker-identity.ts";
import { Recorder } from "../recorder.ts";
import { RunClock } from "../run-clock.ts";
import { Issuer } from "../system/issuer.ts";
import { readSetting } from "../system/program.ts";
import { AttemptNotes, doWork, readInput } from "./attempt.ts";
import type { WorkerSetting } from "./setting.ts";

const say = (level: string) => (fields: object, message: string) =>
  process.stdout.write(`${JSON.stringify({ level, ...fields, message })}\n`);

const setting = readSetting() as WorkerSetting;
const notes = new AttemptNotes(new Recorder(setting.record, new RunClock(setting.clock)), setting.name);
const name = setting.workerName ?? setting.name;
const workerId = workerIdOf({ ...setting, name });

function issueGrant(folder: string): string {
  const { tenantId, applicationId, capabilities } = setting;
  return new Issuer(folder).issue({
    tenantId,
    applicationId,
    subject: `worker:${name}`,
    capabilities: [
      ...["workload:claim", "workload:execute", "worker:register", "worker:heartbeat", "worker:manage"],
      ...capabilities.map((capability) => `worker:capability:${capability}`),
    ],
  });
}

const worker = await runWorker({
  servers: setting.servers,
  tenantId: setting.tenantId,
  applicationId: setting.applicationId,
  name,
  ...(setting.issuer === undefined ? {} : { token: issueGrant(setting.issuer) }),
  capabilities: setting.capabilities,
  concurrency: setting.concurrency,
  leaseMs: setting.leaseMs,
  encoding: setting.encoding,
  graceMs: 2_000,
  log: { debug: () => undefined, info: say("info"), warn: say("warn"), error: say("error") },
  handler: async (work) => {
    const held = { workloadId: work.workloadId, workerId, fencingToken: work.fencingToken };
    notes.note("began", held);
    const abandoned = (): void => notes.note("abandoned", held);
    work.signal.addEventListener("abort", abandoned, { once: true });
    try {
      return await doWork(readInput(work.input), work, setting);
    } finally {
      work.signal.removeEventListener("abort", abandoned);
      notes.note("ended", held);
    }
  },
});
await worker.ended;
process.exit(0);
