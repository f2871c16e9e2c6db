import { expect, it } from "vitest";
import { fenceOf, outcomeOf, refusal, refusedWith, requester, Scene, type Stage } from "./stage.ts";

const MEBIBYTE = 1024 * 1024;

/** A JSON text of exactly so many bytes. */
const textOf = (bytes: number): string => "x".repeat(bytes - 2);

/** Contract 5.2 and 1.8: payloads, result ids, secrets. */
export function describeContent(stage: Stage): void {
  it.each([4095, 4096, 4097, 100_000])("keeps payloads of %i bytes exactly, wherever it keeps them", async (bytes) => {
    const scene = new Scene(stage);
    const payload = textOf(bytes);
    const request = scene.request({ input: payload });
    const { workload } = await scene.a.admit(request);
    expect(workload.input).toBe(payload);
    const claim = await scene.b.claim(scene.claimArguments(workload.workloadId, { start: true }));
    const checkpoint = await scene.c.checkpoint({ ...fenceOf(claim), state: payload });
    expect(checkpoint.state).toBe(payload);
    const context = await scene.b.executionContext({ ...fenceOf(claim), secretReferences: ["secret://a"] });
    expect([context.input, context.checkpoints[0]?.state]).toEqual([payload, payload]);
    const result = await scene.b.complete(scene.completeArguments(claim, { output: payload }));
    expect(result.output).toBe(payload);
    await scene.cluster.restart(scene.c);
    const read = await scene.c.get(workload.workloadId);
    expect([read.input, read.checkpoints[0]?.state, read.result?.output]).toEqual([payload, payload, payload]);
    expect(await scene.c.admit(request)).toEqual({ workload: read, created: false });
  });

  it("takes payloads of exactly 4 MiB, and refuses one byte more, wherever it comes from", async () => {
    const scene = new Scene(stage);
    const most = textOf(4 * MEBIBYTE);
    const more = textOf(4 * MEBIBYTE + 1);
    expect(await refusedWith(scene.a.admit(scene.request({ input: more })))).toBe("WORKLOAD_TOO_LARGE");
    const claim = await scene.running({ input: most });
    const fence = fenceOf(claim);
    expect(await refusedWith(scene.a.checkpoint({ ...fence, state: more }))).toBe("WORKLOAD_TOO_LARGE");
    await scene.a.checkpoint({ ...fence, state: most });
    const late = scene.completeArguments(claim, { output: more });
    expect(await refusal(scene.a.complete(late))).toMatchObject({
      code: "WORKLOAD_TOO_LARGE",
      details: { path: "output", bytes: 4 * MEBIBYTE + 1, bytesMax: 4 * MEBIBYTE },
    });
    expect((await scene.a.complete(scene.completeArguments(claim, { output: most }))).output).toBe(most);
    expect((await scene.b.get(claim.workloadId)).result?.output).toBe(most);
  });

  it("lets no output that can't be stored, and no error text, keep work from ending", async () => {
    const scene = new Scene(stage);
    const claim = await scene.running();
    const refused = [{ output: textOf(5 * MEBIBYTE) }, { output: { password: "x" } }, { output: Number.NaN }];
    for (const changes of refused) await refusal(scene.a.complete(scene.completeArguments(claim, changes)));
    const report = { ...fenceOf(claim), kind: "bug", error: `\ud800${"é".repeat(MEBIBYTE)}` };
    expect(await scene.b.fail(report)).toEqual({ state: "DEAD_LETTER" });
    expect((await scene.c.get(claim.workloadId)).lastFailure?.isWellFormed()).toBe(true);
  });

  it("lets work with the longest error texts use all its attempts, and end", async () => {
    const scene = new Scene(stage);
    const retryPolicy = { maxAttempts: 100, initialDelayMs: 0, maxDelayMs: 0 };
    const { workloadId } = await scene.admitted({ retryPolicy });
    const error = "\u{1F600}".repeat(2048);
    for (let attempt = 1; attempt <= 100; attempt++) {
      const [claim] = await scene.a.claimNext(scene.nextArguments({ start: true }));
      if (claim === undefined) expect.fail(`attempt ${attempt} was not handed out`);
      await scene.b.fail({ ...fenceOf(claim), kind: "timeout", error });
    }
    expect(await scene.c.get(workloadId)).toMatchObject({ state: "DEAD_LETTER", attemptCount: 100 });
  });

  it("gives a result id to one workload of the application, across all nodes", async () => {
    const scene = new Scene(stage);
    const resultId = `result-${scene.tenantId}`;
    const claims = await Promise.all([scene.running(), scene.running(), scene.running()]);
    await scene.together();
    const nodes = [scene.a, scene.b, scene.c];
    const settled = await Promise.allSettled(
      claims.map((claim, index) => (nodes[index] ?? scene.a).complete(scene.completeArguments(claim, { resultId }))),
    );
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const [index, result] of settled.entries()) {
      const claim = claims[index];
      if (result.status === "fulfilled" || claim === undefined) continue;
      expect(result.reason).toMatchObject({ code: "WORKLOAD_RESULT_DUPLICATE" });
      await scene.b.complete(scene.completeArguments(claim));
    }
  });

  it("refuses a result id that a node has not heard of yet", async () => {
    const scene = new Scene(stage);
    const resultId = `result-${scene.tenantId}`;
    const [first, second] = [await scene.running(), await scene.running()];
    await scene.together();
    await scene.cluster.hold(scene.b);
    await scene.a.complete(scene.completeArguments(first, { resultId }));
    const late = scene.completeArguments(second, { resultId });
    expect(await refusedWith(scene.b.complete(late))).toBe("WORKLOAD_RESULT_DUPLICATE");
    const stolen = `result_attempt_${first.workloadId}_1`;
    expect(await refusedWith(scene.b.complete({ ...late, resultId: stolen }))).toBe("WORKLOAD_RESULT_DUPLICATE");
  });

  it("keeps result ids of applications apart", async () => {
    const scene = new Scene(stage);
    const other = new Scene(stage);
    const resultId = "same";
    for (const own of [scene, other]) {
      const claim = await own.running();
      await own.b.complete(own.completeArguments(claim, { resultId }));
    }
  });

  it("refuses secrets in every content, names the place and never the value", async () => {
    const scene = new Scene(stage);
    const claim = await scene.running();
    const fence = fenceOf(claim);
    const { workloadId } = claim;
    const calls = [
      scene.a.admit(scene.request({ input: { deep: [{ Api_Key: "hidden" }] } })),
      scene.a.checkpoint({ ...fence, state: ["sk-hidden"] }),
      scene.a.complete(scene.completeArguments(claim, { output: { a: "-----BEGIN PRIVATE KEY----- hidden" } })),
      scene.a.fail({ ...fence, kind: "bug", error: "sk-hidden" }),
      scene.a.cancel({ workloadId, actor: "olga", reason: "sk-hidden" }),
      scene.a.executionContext({ ...fence, secretReferences: ["hidden"] }),
    ];
    for (const call of calls) {
      const error = await refusal(call);
      expect(error.code).toBe("WORKLOAD_SECRET_REJECTED");
      expect(JSON.stringify([error.message, error.details])).not.toContain("hidden");
      expect(typeof error.details?.["path"]).toBe("string");
    }
    expect((await scene.b.get(workloadId)).state).toBe("RUNNING");
  });

  it("never shows the token of a grant", async () => {
    const scene = new Scene(stage);
    const request = scene.request();
    const authorization = { ...(request["authorization"] as object), token: "hidden" };
    const answer = await scene.a.admit({ ...request, authorization });
    const { tenantId } = scene;
    const shown = [answer, await scene.b.get(answer.workload.workloadId), await scene.b.list({ tenantId })];
    expect(JSON.stringify(shown)).not.toContain("hidden");
  });

  it("times work out as long as its record has room, and cancels it then", async () => {
    const scene = new Scene(stage);
    const { tenantId, applicationId } = scene;
    const constraints = { note: "x".repeat(MEBIBYTE - 4096) };
    const authorization = { grantId: "g", issuer: "i", subject: requester, tenantId, applicationId, constraints };
    const { workloadId } = await scene.admitted({ authorization });
    let refused: string | undefined;
    for (let count = 0; refused === undefined && count < 100; count += 1) {
      const outcome = await outcomeOf(scene.a.timeout({ workloadId, actor: "olga" }));
      if ("code" in outcome) refused = outcome.code;
    }
    expect(refused).toBe("WORKLOAD_TOO_LARGE");
    expect(await scene.a.cancel({ workloadId, actor: "olga" })).toEqual({ state: "CANCELLED" });
  });
}
