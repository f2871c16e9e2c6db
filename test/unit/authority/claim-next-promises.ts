import { expect, it } from "vitest";
import type { Claim } from "../../../src/core/workload/record.ts";
import { fenceOf, LEASE_MS, Scene, type Stage } from "./stage.ts";

const idsOf = (claims: readonly Claim[]): readonly string[] => claims.map(({ workloadId }) => workloadId);

/** A long poll that is waiting when this returns: whatever comes afterwards has to wake it. */
async function waiting(call: Promise<readonly Claim[]>): Promise<Promise<readonly Claim[]>[]> {
  // A call that found nothing has settled its first look within a few turns of the event loop.
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  return [call];
}

/** Contract 2.4 as far as it holds without workers' records: what the next worker is given. */
export function describeClaimNext(stage: Stage): void {
  it("gives high priority first, then what is oldest, and at most what was asked for", async () => {
    const scene = new Scene(stage);
    const low = await scene.admitted({ priority: -1 });
    const plain = await scene.admitted();
    scene.cluster.clock.set(scene.start + 1);
    const later = await scene.admitted();
    const high = await scene.admitted({ priority: 7 });
    const wanted = [high, plain, later].map(({ workloadId }) => workloadId);
    expect(idsOf(await scene.b.claimNext(scene.nextArguments({ max: 3 })))).toEqual(wanted);
    expect(idsOf(await scene.c.claimNext(scene.nextArguments()))).toEqual([low.workloadId]);
    expect(await scene.a.claimNext(scene.nextArguments())).toEqual([]);
  });

  it("gives only what the worker's capabilities allow, and never walks into what they do not", async () => {
    const scene = new Scene(stage);
    const both = await scene.admitted({ capabilities: ["gpu", "cpu"], priority: 2 });
    const gpu = await scene.admitted({ capabilities: ["gpu"], priority: 1 });
    const free = await scene.admitted();
    const next = (capabilities: readonly string[]): Promise<readonly Claim[]> =>
      scene.b.claimNext(scene.nextArguments({ capabilities, max: 5 }));
    expect(idsOf(await next([]))).toEqual([free.workloadId]);
    expect(idsOf(await next(["gpu"]))).toEqual([gpu.workloadId]);
    expect(idsOf(await next(["net", "cpu", "gpu"]))).toEqual([both.workloadId]);
  });

  it("gives nothing of another tenant or application", async () => {
    const scene = new Scene(stage);
    await scene.admitted();
    const other = new Scene(stage);
    expect(await scene.b.claimNext(other.nextArguments())).toEqual([]);
    expect(await scene.b.claimNext(scene.nextArguments({ applicationId: "else" }))).toEqual([]);
    expect(await scene.b.claimNext(scene.nextArguments())).toHaveLength(1);
  });

  it("waits for the time, the approval and the dependencies of work", async () => {
    const scene = new Scene(stage);
    const first = await scene.admitted();
    const early = await scene.admitted({ notBefore: scene.start + 100 });
    const gated = await scene.admitted({ approval: {} });
    const dependent = await scene.admitted({ dependencies: [{ workloadId: first.workloadId }] });
    const next = (): Promise<readonly Claim[]> => scene.b.claimNext(scene.nextArguments({ max: 5, start: true }));
    const claims = await next();
    expect(idsOf(claims)).toEqual([first.workloadId]);
    scene.cluster.clock.set(scene.start + 99);
    expect(await next()).toEqual([]);
    scene.cluster.clock.set(scene.start + 100);
    expect(idsOf(await next())).toEqual([early.workloadId]);
    await scene.a.decide(scene.decideArguments(gated));
    expect(idsOf(await next())).toEqual([gated.workloadId]);
    for (const claim of claims) await scene.a.complete(scene.completeArguments(claim));
    expect(idsOf(await next())).toEqual([dependent.workloadId]);
  });

  it("starts what it hands out when asked to, in the same commit", async () => {
    const scene = new Scene(stage);
    const { workloadId } = await scene.admitted();
    const [claim] = await scene.a.claimNext(scene.nextArguments({ start: true }));
    expect(claim?.workloadId).toBe(workloadId);
    expect(await scene.b.get(workloadId)).toMatchObject({ state: "RUNNING", attempts: [{ status: "RUNNING" }] });
  });

  it("hands each workload out once when all nodes drain one queue", async () => {
    const scene = new Scene(stage);
    await scene.a.admitMany(Array.from({ length: 60 }, () => scene.request()));
    await scene.together();
    const taken: string[] = [];
    const drain = async (index: number): Promise<void> => {
      const node = [scene.a, scene.b, scene.c][index % 3] ?? scene.a;
      for (;;) {
        const claims = await node.claimNext(scene.nextArguments({ workerId: `w${index}`, max: 1 + (index % 4) }));
        if (claims.length === 0) return;
        taken.push(...idsOf(claims));
      }
    };
    await Promise.all([0, 1, 2, 3, 4, 5].map(drain));
    expect(taken).toHaveLength(60);
    expect(new Set(taken).size).toBe(60);
  });

  it("wakes a worker that waits at another node, by admission, approval, dependency, failure and recovery", async () => {
    const scene = new Scene(stage);
    const poll = (): Promise<readonly Claim[]> =>
      scene.b.claimNext(scene.nextArguments({ waitMs: 20_000, start: true }));
    const woken = async (wake: () => Promise<unknown>): Promise<Claim> => {
      const [call] = await waiting(poll());
      await wake();
      const [claim] = (await call) ?? [];
      if (claim === undefined) expect.fail("nothing was handed out");
      return claim;
    };
    const first = await woken(() => scene.a.admit(scene.request()));
    const gated = await scene.admitted({ approval: {} });
    expect((await woken(() => scene.c.decide(scene.decideArguments(gated)))).workloadId).toBe(gated.workloadId);
    const dependent = await scene.admitted({ dependencies: [{ workloadId: first.workloadId }] });
    const next = await woken(() => scene.a.complete(scene.completeArguments(first)));
    expect(next.workloadId).toBe(dependent.workloadId);
    const report = { ...fenceOf(next), kind: "timeout", error: "x" };
    const again = await woken(async () => {
      await scene.a.fail(report);
      scene.cluster.clock.set(scene.start + 1000);
    });
    expect(again).toMatchObject({ workloadId: dependent.workloadId, fencingToken: 2 });
    const recovered = await woken(async () => {
      scene.cluster.clock.set(scene.start + 1000 + LEASE_MS);
      expect(await scene.c.recoverExpired()).toContain(again.workloadId);
    });
    expect([gated.workloadId, dependent.workloadId]).toContain(recovered.workloadId);
  });

  it("wakes a worker when the clock reaches the time of early work", async () => {
    const scene = new Scene(stage);
    const early = await scene.admitted({ notBefore: scene.start + 5000 });
    const [call] = await waiting(scene.b.claimNext(scene.nextArguments({ waitMs: 20_000 })));
    scene.cluster.clock.set(scene.start + 5000);
    expect(idsOf((await call) ?? [])).toEqual([early.workloadId]);
  });

  it("answers nothing when the wait is over, and at once when its caller has gone", async () => {
    const scene = new Scene(stage);
    expect(await scene.b.claimNext(scene.nextArguments({ waitMs: 30 }))).toEqual([]);
    const gone = new AbortController();
    const context = { signal: gone.signal };
    const [call] = await waiting(
      scene.b
        .call("claimNext", scene.nextArguments({ waitMs: 60_000 }), context)
        .then(({ answer }): readonly Claim[] => answer),
    );
    gone.abort();
    expect(await call).toEqual([]);
    const { workloadId } = await scene.admitted();
    await scene.together();
    expect((await scene.b.call("claimNext", scene.nextArguments(), context)).answer).toEqual([]);
    expect((await scene.b.get(workloadId)).state).toBe("READY");
  });

  it("ends the long polls of a node that is closed or rebuilt, without waiting for their time", async () => {
    const scene = new Scene(stage);
    const [call] = await waiting(scene.b.claimNext(scene.nextArguments({ waitMs: 50_000 })));
    await scene.cluster.restart(scene.b);
    expect(await call).toEqual([]);
  }, 10_000);

  it("skips work that ended at another node, and what can't be handed out any more, and finds what is behind", async () => {
    const scene = new Scene(stage);
    const ended = await scene.admitted({ priority: 9 });
    const exhausted = await scene.running({ priority: 8, retryPolicy: { maxAttempts: 1 } });
    const expired = await scene.admitted({ priority: 7, timeouts: { queueMs: 10 } });
    const good = await scene.admitted();
    await scene.together();
    await scene.cluster.hold(scene.b);
    await scene.a.cancel({ workloadId: ended.workloadId, actor: "olga" });
    await scene.a.complete(scene.completeArguments(exhausted));
    scene.cluster.clock.set(scene.start + 10);
    await scene.a.enforceDeadlines();
    expect(idsOf(await scene.b.claimNext(scene.nextArguments()))).toEqual([good.workloadId]);
    expect((await scene.b.get(expired.workloadId)).state).toBe("DEAD_LETTER");
  });

  it("ends expired work that it meets in the queue", async () => {
    const scene = new Scene(stage);
    const expired = await scene.admitted({ priority: 7, timeouts: { queueMs: 10 } });
    const good = await scene.admitted();
    scene.cluster.clock.set(scene.start + 10);
    expect(idsOf(await scene.b.claimNext(scene.nextArguments()))).toEqual([good.workloadId]);
    expect((await scene.b.get(expired.workloadId)).state).toBe("DEAD_LETTER");
  });

  it("asserts dependencies that can still change", async () => {
    const scene = new Scene(stage);
    const failed = await scene.running({ retryPolicy: { maxAttempts: 1 } });
    await scene.a.fail({ ...fenceOf(failed), kind: "bug", error: "x" });
    const { workloadId } = failed;
    const cleaner = await scene.admitted({ dependencies: [{ workloadId, requiredState: "DEAD_LETTER" }] });
    await scene.together();
    await scene.cluster.hold(scene.b);
    await scene.a.retry({ workloadId, actor: "olga" });
    const claims = await scene.b.claimNext(scene.nextArguments({ max: 5 }));
    expect(idsOf(claims)).not.toContain(cleaner.workloadId);
    expect((await scene.b.explain(cleaner.workloadId)).map(({ reason }) => reason)).toEqual(["dependency"]);
  });

  it("hands out together what depends on the same work, and on each other", async () => {
    const scene = new Scene(stage);
    const failed = await scene.running({ retryPolicy: { maxAttempts: 1 } });
    await scene.a.fail({ ...fenceOf(failed), kind: "bug", error: "x" });
    const dead = { workloadId: failed.workloadId, requiredState: "DEAD_LETTER" };
    const first = await scene.admitted({ dependencies: [dead] });
    const second = await scene.admitted({ dependencies: [dead] });
    const third = await scene.admitted({ dependencies: [{ workloadId: first.workloadId, requiredState: "READY" }] });
    await scene.together();
    const claims = await scene.b.claimNext(scene.nextArguments({ max: 5, requestId: "all" }));
    expect([...idsOf(claims)].sort()).toEqual([first, second, third].map(({ workloadId }) => workloadId).sort());
  });

  it("hands out what a single commit can hold, when there is more of it", async () => {
    const scene = new Scene(stage);
    const requests = Array.from({ length: 250 }, () =>
      scene.request({ retryPolicy: { maxAttempts: 1 }, priority: -1 }),
    );
    const dead = (await scene.a.admitMany(requests)).flatMap((answer) => (answer.ok ? [answer.workload] : []));
    const { workerId } = scene.nextArguments() as { readonly workerId: string };
    await Promise.all(
      dead.map(async ({ workloadId }) => {
        const claim = await scene.a.claim(scene.claimArguments(workloadId, { workerId }));
        await scene.a.fail({ ...fenceOf(claim), kind: "bug", error: "x" });
      }),
    );
    const dependencies = dead.map(({ workloadId }) => ({ workloadId, requiredState: "DEAD_LETTER" }));
    for (let count = 0; count < 6; count += 1) await scene.admitted({ dependencies });
    await scene.together();
    const taken: string[] = [];
    for (let request = 1; taken.length < 6; request += 1) {
      const claims = await scene.b.claimNext(scene.nextArguments({ max: 6, requestId: `r${request}` }));
      expect(claims.length).toBeGreaterThan(0);
      taken.push(...idsOf(claims));
    }
    expect(new Set(taken).size).toBe(6);
  }, 30_000);
}
