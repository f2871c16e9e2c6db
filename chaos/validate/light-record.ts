import type { Payload, WorkloadRecord } from "../../src/core/workload/record.ts";
import { hashOf, hashOfText } from "../model/identities.ts";

const lightPayload = (payload: Payload): Payload =>
  "json" in payload ? { json: `sha256:${hashOfText(payload.json)}` } : payload;

/** A record whose payloads are hashes: still comparable, and small enough to be kept. */
export function lightRecord(record: WorkloadRecord): WorkloadRecord {
  const { result } = record;
  return {
    ...record,
    input: lightPayload(record.input),
    checkpoints: record.checkpoints.map((checkpoint) => ({ ...checkpoint, state: lightPayload(checkpoint.state) })),
    ...(result === undefined ? {} : { result: { ...result, output: lightPayload(result.output) } }),
  };
}

function isHashed(payload: Payload, hash: string): boolean {
  if (!("json" in payload)) return true;
  try {
    return hashOf(JSON.parse(payload.json)) === hash;
  } catch {
    return false;
  }
}

/** The payloads that a version brought whose recorded hash is not theirs, by name. */
export function wrongHashes(before: WorkloadRecord | undefined, after: WorkloadRecord): readonly string[] {
  const wrong: string[] = [];
  if (before === undefined && !isHashed(after.input, after.inputHash)) wrong.push("the input");
  for (const { sequence, state, stateHash } of after.checkpoints.slice(before?.checkpoints.length ?? 0))
    if (!isHashed(state, stateHash)) wrong.push(`checkpoint ${sequence}`);
  if (before?.result === undefined && after.result !== undefined)
    if (!isHashed(after.result.output, after.result.outputHash)) wrong.push("the output");
  return wrong;
}
