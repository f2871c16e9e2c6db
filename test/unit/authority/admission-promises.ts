import { expect, it } from "vitest";
import { eventsOf, refusal, refusedWith, requester, Scene, type Stage } from "./stage.ts";

/** Contract 1.7 where several nodes meet. */
export function describeAdmission(stage: Stage): void {
  it("creates once when the same request comes to all nodes at the same moment", async () => {
    const scene = new Scene(stage);
    const { a, b, c } = scene;
    const request = scene.request();
    const answers = await Promise.all([a, b, c, a, b, c].map((node) => node.admit(request)));
    expect(answers.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(answers.map(({ workload }) => workload.workloadId)).size).toBe(1);
    for (const { workload } of answers) expect(workload).toEqual(answers[0]?.workload);
  });

  it("lets one of two different requests with one key win, and names to the other what differs", async () => {
    const scene = new Scene(stage);
    const one = scene.request({ idempotencyKey: "one", priority: 1 });
    const two = { ...one, priority: 2, input: { invoice: 43 }, capabilities: ["gpu"] };
    const [first, second] = await Promise.allSettled([scene.a.admit(one), scene.b.admit(two)]);
    const winners = [first, second].filter(({ status }) => status === "fulfilled");
    expect(winners).toHaveLength(1);
    const loser = first.status === "rejected" ? scene.b.admit(one) : scene.b.admit(two);
    const error = await refusal(loser);
    expect(error.code).toBe("IDEMPOTENCY_KEY_REUSED");
    expect(error.details).toEqual({ fields: ["input", "capabilities", "priority"] });
    expect(error.definite).toBe(true);
  });

  it("answers a replay at a node whose view has never heard of the work", async () => {
    const scene = new Scene(stage);
    await scene.cluster.hold(scene.b);
    const request = scene.request();
    const { workload } = await scene.a.admit(request);
    expect(await scene.b.admit(request)).toEqual({ workload, created: false });
    expect(await refusedWith(scene.b.admit({ ...request, definitionRevision: "8" }))).toBe("IDEMPOTENCY_KEY_REUSED");
  });

  it("replays whatever has become of the work since, with the state it has by then", async () => {
    const scene = new Scene(stage);
    const request = scene.request({ approval: {}, notBefore: scene.start + 50 });
    const { workload } = await scene.a.admit(request);
    expect(eventsOf(workload)).toEqual(["AWAITING_APPROVAL"]);
    await scene.a.decide(scene.decideArguments(workload));
    expect(await scene.b.admit(request)).toMatchObject({ created: false, workload: { state: "READY" } });
    scene.cluster.clock.set(scene.start + 50);
    const claim = await scene.a.claim(scene.claimArguments(workload.workloadId, { start: true }));
    await scene.a.complete(scene.completeArguments(claim));
    expect(await scene.c.admit(request)).toMatchObject({ created: false, workload: { state: "SUCCEEDED" } });
  });

  it("keeps the keys of tenants, applications and requesters apart", async () => {
    const scene = new Scene(stage);
    const other = new Scene(stage);
    const key = { idempotencyKey: "same" };
    const grant = { grantId: "g", issuer: "i", tenantId: scene.tenantId, applicationId: scene.applicationId };
    const agent = { kind: "agent", id: requester.id };
    const answers = [
      await scene.a.admit(scene.request(key)),
      await scene.b.admit(other.request({ ...key, priority: 5 })),
      await scene.c.admit(
        scene.request({ ...key, requestedBy: agent, authorization: { ...grant, subject: agent }, priority: 6 }),
      ),
    ];
    expect(answers.map(({ created }) => created)).toEqual([true, true, true]);
    expect(new Set(answers.map(({ workload }) => workload.workloadId)).size).toBe(3);
  });

  it("refuses an unbound grant before any replay", async () => {
    const scene = new Scene(stage);
    const request = scene.request();
    await scene.a.admit(request);
    const stranger = { kind: "service", id: "stranger" };
    const authorization = { grantId: "g", issuer: "i", subject: stranger, tenantId: "x", applicationId: "y" };
    expect(await refusedWith(scene.b.admit({ ...request, authorization }))).toBe("WORKLOAD_UNAUTHORIZED");
  });

  it("answers each item of a batch on its own, as the single door does", async () => {
    const scene = new Scene(stage);
    const taken = scene.request({ idempotencyKey: "taken" });
    await scene.a.admit(taken);
    const fresh = scene.request({ idempotencyKey: "fresh" });
    const items: readonly unknown[] = [
      fresh,
      { ...taken, priority: 9 },
      taken,
      { tenantId: 5 },
      null,
      scene.request({ input: { password: "x" } }),
      fresh,
      scene.request({ idempotencyKey: " " }),
    ];
    const answers = await scene.b.admitMany(items);
    const told = answers.map((answer) => (answer.ok ? String(answer.created) : answer.error.code));
    expect(told.slice(1, 6)).toEqual([
      "IDEMPOTENCY_KEY_REUSED",
      "false",
      "WORKLOAD_INVALID",
      "WORKLOAD_INVALID",
      "WORKLOAD_SECRET_REJECTED",
    ]);
    expect(new Set([told[0], told[6]])).toEqual(new Set(["false", "true"]));
    expect(told[7]).toBe("WORKLOAD_INVALID");
  });

  it("refuses a batch that is no list, or a list of more than a thousand", async () => {
    const scene = new Scene(stage);
    expect(await refusedWith(scene.a.admitMany({ length: 1 }))).toBe("WORKLOAD_INVALID");
    const items = Array.from({ length: 1001 }, () => ({}));
    expect(await refusedWith(scene.a.admitMany(items))).toBe("WORKLOAD_INVALID");
    expect(await scene.a.admitMany([])).toEqual([]);
  });

  it("admits a thousand at once", async () => {
    const scene = new Scene(stage);
    const answers = await scene.a.admitMany(Array.from({ length: 1000 }, () => scene.request()));
    expect(answers.filter((answer) => answer.ok && answer.created)).toHaveLength(1000);
  });

  it("stores nothing that it refused", async () => {
    const scene = new Scene(stage);
    const { tenantId } = scene;
    await refusal(scene.a.admit(scene.request({ input: { a: ["sk-1"] } })));
    await refusal(scene.a.admit(scene.request({ timeouts: { queueMs: 0 } })));
    await refusal(scene.a.admit(scene.request({ approval: { approverKinds: [] } })));
    await refusal(scene.a.admit(scene.request({ typo: true })));
    expect(await scene.b.list({ tenantId })).toEqual({ workloads: [] });
  });
}
