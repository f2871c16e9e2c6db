/**
 * Goal: few commits leave at once and are never held back; many leave together; none waits for an answer that does not come.
 * Method: sends that are answered by hand, and a record of what was sent when.
 */
import { describe, expect, it } from "vitest";
import { Departures } from "../../src/store/jetstream/departures.ts";

interface Traffic {
  /** What has been sent so far. */
  readonly sent: readonly number[];
  send(id: number): Promise<number>;
  answer(id: number): Promise<void>;
}

function traffic(): Traffic {
  const departures = new Departures();
  const sent: number[] = [];
  const answers = new Map<number, () => void>();
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  };
  return {
    sent,
    send: (id) =>
      departures.through(() => {
        sent.push(id);
        return new Promise((resolve) => answers.set(id, () => resolve(id)));
      }),
    answer: async (id) => {
      answers.get(id)?.();
      await settle();
    },
  };
}

const numbers = (from: number, count: number): number[] => Array.from({ length: count }, (_, index) => from + index);

const start = (stage: Traffic, ids: readonly number[]): Promise<number[]> =>
  Promise.all(ids.map((id) => stage.send(id)));

describe("departures", () => {
  it("let a few commits leave in the moment they come", () => {
    const stage = traffic();
    void start(stage, numbers(0, 8));
    expect(stage.sent).toEqual(numbers(0, 8));
  });

  it("hold further ones until they are as many as those under way", async () => {
    const stage = traffic();
    void start(stage, numbers(0, 15));
    expect(stage.sent).toEqual(numbers(0, 8));
    void start(stage, [15]);
    await stage.answer(-1);
    expect(stage.sent).toEqual(numbers(0, 16));
  });

  it("let them leave together as soon as few are under way", async () => {
    const stage = traffic();
    void start(stage, numbers(0, 12));
    expect(stage.sent).toEqual(numbers(0, 8));
    await stage.answer(3);
    expect(stage.sent).toEqual(numbers(0, 12));
  });

  it("let them leave after a while though nothing is answered", async () => {
    const stage = traffic();
    void start(stage, numbers(0, 10));
    expect(stage.sent).toEqual(numbers(0, 8));
    await expect.poll(() => stage.sent).toEqual(numbers(0, 10));
  });

  it("hand on answers and failures, and count a failure as an answer", async () => {
    const departures = new Departures();
    const fail = (): Promise<never> => Promise.reject(new RangeError("no"));
    const failed = await Promise.allSettled(numbers(0, 30).map(() => departures.through(fail)));
    expect(failed.every(({ status }) => status === "rejected")).toBe(true);
    expect(await Promise.all(numbers(0, 30).map((id) => departures.through(() => Promise.resolve(id))))).toEqual(
      numbers(0, 30),
    );
    await expect(
      departures.through(() => {
        throw new RangeError("not even sent");
      }),
    ).rejects.toThrow("not even sent");
  });

  it("keep the order in which commits came", async () => {
    const stage = traffic();
    const all = start(stage, numbers(0, 40));
    for (const id of numbers(0, 40)) await stage.answer(id);
    expect(await all).toEqual(numbers(0, 40));
    expect(stage.sent).toEqual(numbers(0, 40));
  });
});
