/**
 * Goal: every commit under a grant says who did it, under which grant of whose (contract 4.3), a revocation included.
 * Method: calls with a grant at a node in virtual time; the store's history is looked through afterwards.
 */
import { expect, it } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { snapshotOf } from "../../../src/core/grant/snapshot.ts";
import { SimulatedLog } from "../../../src/store/simulated/simulated-log.ts";
import { scope, World } from "../authority/virtual-world.ts";
import { grantOf } from "./grant-fixtures.ts";

it("the store tells the subject, the issuer and the grant of each commit", async () => {
  const world = new World();
  const log = new SimulatedLog({ clock: world.queue, queue: world.queue, history: true });
  const node = world.node("n1", { log, sink: silentLog });
  await node.becomeReady();
  const { authority } = node;
  const { workload } = await world.settle(authority.admit(world.request({})));
  const subject = { kind: "human", id: "ops" } as const;
  const grant = snapshotOf(grantOf({ id: "grant-ops", subject, ...scope }), []);
  const context = { subject, grant, sessionId: "session-7" };
  await world.settle(authority.call("cancel", { workloadId: workload.workloadId, actor: "ops" }, context));
  const target = { kind: "subject", subject: { kind: "agent", id: "lost" } };
  await world.settle(authority.call("revoke", { ...scope, target }, context));
  await world.settle(authority.close());
  const who = { subject: "human:ops", issuer: "service:issuer", grant: "grant-ops", session: "session-7" };
  const traces = log.history(0).flatMap(({ entries }) => entries.map(({ provenance }) => provenance));
  expect(traces.find(({ action }) => action === "cancel")).toMatchObject({ ...who, workload: workload.workloadId });
  const revoked = traces.find(({ action }) => action === "revoke");
  expect(revoked).toEqual({
    ...{ action: "revoke", node: "n1", tenant: scope.tenantId, application: scope.applicationId },
    ...who,
  });
});
