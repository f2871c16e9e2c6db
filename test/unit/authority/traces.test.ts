/**
 * Goal: every commit says who did it (contract 4.3, 5.2), every commit and every refusal leaves one line in the log, and
 * neither ever holds a payload or a token.
 * Method: one workload's life at a node in virtual time, its log and the store's entries looked through afterwards.
 */
import { describe, expect, it } from "vitest";
import type { Log } from "../../../src/base/log.ts";
import { SimulatedLog } from "../../../src/store/simulated/simulated-log.ts";
import { unpackValue } from "../../../src/wire/codec.ts";
import { fenceOf, refusal } from "./stage.ts";
import { MINUTE, scope, World } from "./virtual-world.ts";

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: object;
}

const requester = { kind: "service", id: "billing" } as const;
const marks = ["mark-of-input", "mark-of-state", "mark-of-output", "mark-of-token"] as const;

async function live(): Promise<{
  readonly lines: readonly Line[];
  readonly log: SimulatedLog;
  readonly workloadId: string;
}> {
  const [input, state, output, token] = marks;
  const world = new World();
  const log = new SimulatedLog({ clock: world.queue, queue: world.queue, history: true });
  const lines: Line[] = [];
  const at = (level: string) => (fields: object, message: string) => void lines.push({ level, message, fields });
  const sink: Log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const node = world.node("n1", { log, sink });
  await node.becomeReady();
  const { authority } = node;
  const context = { caller: "service:billing", subject: requester };
  const authorization = { grantId: "grant_1", issuer: "ca", subject: requester, ...scope, token };
  const request = world.request({ input, sessionId: "session_1", authorization, approval: {} });
  const { answer } = await world.settle(authority.call("admit", request, context));
  const { workloadId, inputHash } = answer.workload;
  await refusal(world.settle(authority.claim({ workloadId, workerId: "w1", leaseMs: MINUTE })));
  const decider = { kind: "human", id: "ada" };
  await world.settle(authority.decide({ workloadId, decider, outcome: "approved", grantId: "grant_2", inputHash }));
  const worker = { caller: "worker:w1", subject: { kind: "worker", id: "w1" }, sessionId: "session_2" } as const;
  const claiming = { workloadId, workerId: "w1", leaseMs: MINUTE, start: true };
  const claim = (await world.settle(authority.call("claim", claiming, worker))).answer;
  await world.settle(authority.call("checkpoint", { ...fenceOf(claim), state }, worker));
  await world.settle(authority.call("complete", { ...fenceOf(claim), output }, worker));
  await refusal(world.settle(authority.cancel({ workloadId, actor: "olga" })));
  await world.settle(authority.close());
  return { lines, log, workloadId };
}

describe("the life of a workload", () => {
  it("is stored with who did what, at which node, in every message", async () => {
    const { log, workloadId } = await live();
    const entries = log
      .history(0)
      .flatMap(({ entries: written }) => written)
      .filter(({ key }) => key.startsWith("w."));
    const always = { node: "n1", tenant: "acme", application: "invoices", workload: workloadId };
    const attempt = { attempt: `attempt_${workloadId}_1`, worker: "w1", subject: "worker:w1", session: "session_2" };
    const admitted = { subject: "service:billing", issuer: "service:ca", grant: "grant_1", session: "session_1" };
    expect(entries.map(({ provenance }) => provenance)).toEqual([
      { action: "admit", ...always, ...admitted },
      { action: "decide", ...always, subject: "human:ada" },
      { action: "claim", ...always, ...attempt },
      { action: "checkpoint", ...always, ...attempt },
      { action: "complete", ...always, ...attempt },
    ]);
    // Only the record itself holds what was handed in.
    expect(JSON.stringify(entries.map(({ value }) => unpackValue(value)))).toContain(marks[0]);
  });

  it("leaves a line for each commit and each refusal, and none with a payload or a token", async () => {
    const { lines, workloadId } = await live();
    const of = (message: string): readonly Line[] =>
      lines.filter((line) => line.message === message && JSON.stringify(line).includes(workloadId));
    expect(of("commit").map(({ level, fields }) => [level, (fields as { action?: string }).action])).toEqual(
      ["admit", "decide", "claim", "checkpoint", "complete"].map((action) => ["debug", action]),
    );
    const refusals = lines.filter(({ message }) => message === "refusal");
    expect(refusals.map(({ level, fields }) => ({ level, ...fields }))).toEqual([
      { level: "debug", call: "claim", code: "WORKLOAD_APPROVAL_PENDING" },
      { level: "debug", call: "cancel", code: "WORKLOAD_TRANSITION_DENIED" },
    ]);
    const text = JSON.stringify(lines);
    for (const mark of marks) expect(text).not.toContain(mark);
  });
});
