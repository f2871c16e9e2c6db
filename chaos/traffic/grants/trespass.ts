import { RAW_CAPABILITY } from "../../system/setting.ts";
import type { Admitted, Holder } from "./party.ts";
import type { GrantPlay, GrantStage, Question } from "./stage.ts";

/** Everything that can be asked about one workload of somebody else. */
const aboutOne = ({ workloadId, inputHash }: Admitted, holder: Holder): readonly Question[] => {
  const path = `/v1/workloads/${workloadId}`;
  const about = { workloadId };
  return [
    { call: "get", path, about },
    { call: "result", path: `${path}/result`, about },
    { call: "explain", path: `${path}/explain`, about },
    { call: "cancel", path: `${path}/cancel`, body: {}, about },
    { call: "retry", path: `${path}/retry`, body: {}, about },
    {
      call: "decide",
      path: `${path}/decision`,
      body: { outcome: "approved", inputHash },
      about: { ...about, decider: holder.subject },
    },
  ];
};

/** What names the other tenant, and no workload. */
const ofTheOther = (stage: GrantStage, holder: Holder): readonly Question[] => {
  const { tenantId } = stage.other;
  const about = { tenantId };
  return [
    { call: "list", path: `/v1/workloads?tenantId=${tenantId}`, about },
    { call: "listApprovals", path: `/v1/approvals?tenantId=${tenantId}`, about },
    stage.admission({ ...holder, tenantId }),
    {
      call: "revoke",
      path: "/v1/grants/revocations",
      body: { tenantId, target: { kind: "subject", subject: holder.subject } },
    },
  ];
};

/** Asks for what is the other tenant's, at both doors, with a grant that is good for everything at home. */
export const askForOthers: GrantPlay = async (stage) => {
  const { draw, own, other } = stage;
  const found = draw.pick(other.admitted);
  if (found === undefined) return stage.pause(300);
  const applicationId = found.applicationId;
  const role = draw.pick(["requester", "approver", "warden"] as const);
  const holder = own.holder(role, { kind: "human", id: "mallory" }, applicationId);
  for (const question of draw.shuffled([...aboutOne(found, holder), ...ofTheOther(stage, holder)]).slice(0, 5))
    await stage.once(holder, question);
  const worker = stage.worker(applicationId);
  const claim = { workloadId: found.workloadId, leaseMs: 900, start: true, capabilities: [RAW_CAPABILITY] };
  await stage.work(worker, "work.claim", claim);
  await stage.work(worker, "work.claim", claim, other.tenantId);
  await stage.work(worker, "work.next", { max: 1, leaseMs: 900, capabilities: [], start: true }, other.tenantId);
  // Work that waits for work of the other tenant, which is not there for it.
  const dependencies = [{ workloadId: found.workloadId }];
  await stage.admit(stage.requester(applicationId), { dependencies, timeouts: { overallMs: 3_000 } });
};

const WATCHED_BYTES_MAX = 1 << 20;

/** Listens to the events of its own application, and of whatever else a node might tell it, and reads what anybody may read. */
export const watchOwn: GrantPlay = async (stage) => {
  const holder = stage.requester();
  const call = stage.question(holder, { call: "events", path: "/v1/events" });
  await stage.http.listen(call, stage.targets.any(), {
    forMs: stage.draw.whole(800, 3_000),
    bytesMax: WATCHED_BYTES_MAX,
  });
  const metrics = stage.question(holder, { call: "metrics", path: "/metrics" });
  await stage.http.listen(metrics, stage.targets.any(), { forMs: 2_000, bytesMax: WATCHED_BYTES_MAX });
};
