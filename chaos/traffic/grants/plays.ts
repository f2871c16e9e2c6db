import { RAW_CAPABILITY } from "../../system/setting.ts";
import type { Fence } from "../raw-worker.ts";
import type { Holder } from "./party.ts";
import type { GrantPlay, GrantStage } from "./stage.ts";
import { watchOwn, askForOthers } from "./trespass.ts";

/** For how long somebody goes on whose grant has ended, ms: longer than any node may not know of it, and than a commit may take. */
const AFTER_MS = [4_500, 12_000] as const;
const CALM_MS = [40, 160] as const;

const rawWork = (stage: GrantStage): object => ({
  capabilities: [RAW_CAPABILITY],
  input: { note: stage.own.mark },
});

/** Usual work: admitted, read, now and then cancelled; worker processes do it. */
const useGrant: GrantPlay = async (stage) => {
  const holder = stage.requester();
  const admitted = await stage.admit(holder);
  if (admitted === undefined) return;
  const { workloadId, revision } = admitted;
  const path = `/v1/workloads/${workloadId}`;
  await stage.once(holder, { call: "get", path, about: { workloadId }, minRevision: revision });
  await stage.once(holder, { call: "list", path: "/v1/workloads?limit=20" });
  if (stage.draw.chance(0.2))
    await stage.settle(holder, {
      call: "cancel",
      path: `${path}/cancel`,
      body: { reason: `not wanted: ${stage.own.mark}` },
      about: { workloadId, actor: holder.subject.id },
    });
};

/** Gated work, decided under an approver's grant. */
const decideUnderGrant: GrantPlay = async (stage) => {
  const holder = stage.requester();
  const admitted = await stage.admit(holder, { approval: { approverKinds: ["human"], approvers: [] } });
  if (admitted === undefined) return;
  const { workloadId, inputHash, applicationId } = admitted;
  const decider = { kind: "human", id: "grace" } as const;
  await stage.settle(stage.own.holder("approver", decider, applicationId), {
    call: "decide",
    path: `/v1/workloads/${workloadId}/decision`,
    body: { outcome: stage.draw.chance(0.7) ? "approved" : "rejected", reason: stage.own.mark, inputHash },
    about: { workloadId, decider },
  });
};

/** Raw work by a worker under its own grant. */
const workUnderGrant: GrantPlay = async (stage) => {
  const admitted = await stage.admit(stage.requester(), rawWork(stage));
  if (admitted === undefined) return;
  const worker = stage.worker(admitted.applicationId);
  const { code, body } = await stage.claim(worker, admitted.workloadId);
  if (code !== "") return;
  const { workloadId, claimId, fencingToken } = body as Fence;
  await stage.work(worker, "work.complete", { workloadId, claimId, fencingToken, output: { by: stage.own.mark } });
};

/** Goes on until told to stop, whatever it is answered. */
async function persist(stage: GrantStage, ended: () => boolean, act: () => Promise<unknown>): Promise<void> {
  while (!ended() && !stage.ending.aborted) {
    await act();
    await stage.pause(stage.draw.whole(...CALM_MS));
  }
}

/** Ends somebody's grant while his calls are under way; he goes on asking. */
async function revokeDuring(stage: GrantStage, holder: Holder, act: () => Promise<unknown>): Promise<void> {
  let ended = false;
  const lanes = [1, 2].map(() => persist(stage, () => ended, act));
  await stage.pause(stage.draw.whole(200, 1_000));
  await stage.revoke(holder, stage.draw.chance(0.5) ? "subject" : "grant");
  await stage.pause(stage.draw.whole(...AFTER_MS));
  ended = true;
  await Promise.all(lanes);
}

const revokeRequester: GrantPlay = async (stage) => {
  const subject = { kind: "service", id: stage.name() } as const;
  const holder = stage.own.holder("requester", subject, stage.application());
  const first = await stage.admit(holder);
  await revokeDuring(stage, holder, async () => {
    if (stage.draw.chance(0.5)) stage.noteAdmitted(await stage.once(holder, stage.admission(holder)));
    else if (first !== undefined) {
      const { workloadId, revision } = first;
      const path = `/v1/workloads/${workloadId}`;
      await stage.once(holder, { call: "get", path, about: { workloadId }, minRevision: revision });
    }
  });
};

/** A worker that loses its grant while it holds a claim and renews it. */
const revokeWorker: GrantPlay = async (stage) => {
  const admitted = await stage.admit(stage.requester(), rawWork(stage));
  if (admitted === undefined) return;
  const worker = stage.worker(admitted.applicationId);
  const { code, body } = await stage.claim(worker, admitted.workloadId);
  if (code !== "") return;
  const { workloadId, claimId, fencingToken } = body as Fence;
  const fence = { workloadId, claimId, fencingToken };
  await revokeDuring(stage, worker, () =>
    stage.draw.chance(0.6)
      ? stage.work(worker, "work.heartbeat", { ...fence, extendMs: 1_800 })
      : stage.work(worker, "work.next", { max: 1, waitMs: 100, leaseMs: 900, capabilities: [], start: true }),
  );
};

/** Work whose requester's grant ends before anybody claims it; some of it keeps what was admitted. */
const loseAuthorization: GrantPlay = async (stage) => {
  const applicationId = stage.application();
  const subject = { kind: "service", id: stage.name() } as const;
  const holder = stage.own.holder("requester", subject, applicationId);
  const kept = stage.draw.chance(0.3) ? { reauthorize: "never" } : {};
  const admitted = await Promise.all([
    stage.admit(holder, rawWork(stage)),
    stage.admit(holder, { ...rawWork(stage), ...kept }),
  ]);
  await stage.revoke(holder, stage.draw.chance(0.5) ? "subject" : "grant");
  await stage.pause(stage.draw.whole(0, 6_000));
  for (const one of admitted) {
    if (one === undefined) continue;
    const worker = stage.worker(applicationId);
    const { code, body } = await stage.claim(worker, one.workloadId);
    if (code !== "") continue;
    const { workloadId, claimId, fencingToken } = body as Fence;
    await stage.work(worker, "work.complete", { workloadId, claimId, fencingToken, output: stage.own.mark });
  }
};

/** Every play under grants, and how often it is drawn beside the others. */
export const grantPlays: readonly { readonly item: GrantPlay; readonly name: string; readonly weight: number }[] = [
  { item: useGrant, name: "use", weight: 4 },
  { item: decideUnderGrant, name: "decide", weight: 2 },
  { item: workUnderGrant, name: "work", weight: 2 },
  { item: revokeRequester, name: "revoke-requester", weight: 2 },
  { item: revokeWorker, name: "revoke-worker", weight: 1.5 },
  { item: loseAuthorization, name: "lose", weight: 1.5 },
  { item: askForOthers, name: "ask-for-others", weight: 3 },
  { item: watchOwn, name: "watch", weight: 1 },
];
