import type { NatsConnection } from "@nats-io/nats-core";
import { decideAdmit } from "../src/core/workload/admission.ts";
import { decideClaim } from "../src/core/workload/claim.ts";
import { decideComplete } from "../src/core/workload/progress.ts";
import type { WorkloadRecord } from "../src/core/workload/record.ts";
import { defaultRules } from "../src/core/workload/rules.ts";
import { fillAdmission } from "../src/http/members.ts";
import { workloadKey } from "../src/store/keys.ts";
import { encodeWorkload } from "../src/wire/codec.ts";
import { parseShape } from "../src/wire/parse.ts";
import { admitRequest, completeRequest } from "../src/wire/requests.ts";
import { closedLoop, type Figures } from "./figures.ts";
import { RawStore } from "./raw-store.ts";
import { admissionOf, capabilities, completionOf, keyOf, leaseMs, requester } from "./sample-work.ts";

/** Messages of one atomic batch. */
const BATCH = 250;
const IN_FLIGHT = 4;

/** Of ten records six are done, three wait and one is being worked on. */
function recordOf(index: number, now: number): WorkloadRecord {
  const parsed = parseShape(
    admitRequest,
    fillAdmission(admissionOf(keyOf("fill", index)), { subject: requester }, undefined),
  );
  if (!parsed.ok) throw new RangeError(parsed.error.message);
  const { requestId: _unused, ...request } = parsed.value;
  const admitted = decideAdmit(undefined, request, { now, rules: defaultRules });
  if (!admitted.ok) throw new RangeError(admitted.error.message);
  const { record } = admitted.answer;
  const kind = index % 10;
  if (kind < 3) return record;
  const command = { workerId: `worker-${index % 100}`, capabilities: [...capabilities], leaseMs, start: true };
  const claimed = decideClaim(record, command, { now, dependencies: new Map() });
  if (!claimed.ok || claimed.change === undefined) throw new RangeError("the record is not claimable");
  if (kind === 3) return claimed.change.record;
  const completion = parseShape(completeRequest, completionOf(claimed.answer));
  if (!completion.ok) throw new RangeError(completion.error.message);
  const { output, artifacts, schemaVersion } = completion.value;
  const completed = decideComplete(
    claimed.change.record,
    { fence: claimed.answer, resultId: undefined, output, artifacts, schemaVersion },
    { now, rules: defaultRules, reservedFor: undefined },
  );
  if (!completed.ok || completed.change === undefined) throw new RangeError("the record can't be completed");
  return completed.change.record;
}

/** Writes records of work straight into the bucket, in large batches. */
export function fillRecords(connection: NatsConnection, prefix: string, total: number): Promise<Figures> {
  const raw = new RawStore(connection, prefix);
  const now = Date.now() - 60_000;
  return closedLoop({ inFlight: IN_FLIGHT, end: { operations: Math.ceil(total / BATCH) } }, async (_, batch) => {
    const first = batch * BATCH;
    const entries = Array.from({ length: Math.min(BATCH, total - first) }, (__, offset) => {
      const record = recordOf(first + offset, now);
      return { key: workloadKey(record, record.workloadId), value: encodeWorkload(record) };
    });
    await raw.create(entries);
  });
}
