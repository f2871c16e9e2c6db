/**
 * Goal: whoever waited longest is offered work first, and a queue that thousands wait in costs little.
 * Method: workers that note what they are offered, and a pick that counts how often it is asked.
 */
import { describe, expect, it } from "vitest";
import { WaitingWorkers, type WaitingWorker } from "../../../src/authority/waiting-workers.ts";
import { abilityOf } from "../../../src/store/projection/ability.ts";
import type { Rank } from "../../../src/store/projection/projected.ts";

const queue = '["acme","invoices"]';

/** Work that may each be offered once, with the capability that it needs. */
class Work {
  asked = 0;
  readonly #left: { readonly needs: string; readonly rank: Rank }[];

  constructor(...needs: readonly string[]) {
    this.#left = needs.map((need, index) => ({
      needs: need,
      rank: { priority: 0, createdAt: index, workloadId: `workload_${index}` },
    }));
  }

  readonly pick = (worker: WaitingWorker): readonly Rank[] => {
    this.asked += 1;
    const index = this.#left.findIndex(({ needs }) =>
      worker.ability.accepts({ definitionId: "d", capabilities: [needs] }),
    );
    return index < 0 ? [] : this.#left.splice(index, 1).map(({ rank }) => rank);
  };
}

const workersOf = (
  work: Work,
  capabilities: readonly (readonly string[])[],
): { waiting: WaitingWorkers; log: string[] } => {
  const waiting = new WaitingWorkers(work.pick);
  const log: string[] = [];
  for (const [index, own] of capabilities.entries())
    waiting.add({
      queue,
      workerId: "w",
      ability: abilityOf(own),
      max: 1,
      offer: (candidates) => log.push(`${index}: ${candidates.map(({ workloadId }) => workloadId).join()}`),
      dismiss: () => log.push(`${index}: dismissed`),
    });
  return { waiting, log };
};

describe("workers that wait", () => {
  it("are offered work in the order in which they came, each what it can do", () => {
    const { waiting, log } = workersOf(new Work("cpu", "gpu", "cpu"), [["disk"], ["gpu"], ["cpu"], ["cpu"], ["cpu"]]);
    waiting.dispatch(queue);
    expect(log).toEqual(["1: workload_1", "2: workload_0", "3: workload_2"]);
    waiting.dismiss();
    expect(log.slice(3)).toEqual(["0: dismissed", "4: dismissed"]);
  });

  it("cost one look for each kind of worker once there is nothing left, however many they are", () => {
    const work = new Work("cpu");
    const { waiting, log } = workersOf(
      work,
      Array.from({ length: 5000 }, (_, index) => (index % 2 === 0 ? ["cpu"] : ["gpu"])),
    );
    waiting.dispatch(queue);
    expect(log).toEqual(["0: workload_0"]);
    expect(work.asked).toBe(3);
  });

  it("are not asked how much room they have when there is nothing for their kind", () => {
    const waiting = new WaitingWorkers(new Work().pick);
    let asked = 0;
    const worker = { queue, workerId: "w", ability: abilityOf([]), offer: () => undefined, dismiss: () => undefined };
    for (let index = 0; index < 100; index++)
      waiting.add({
        ...worker,
        get max() {
          asked += 1;
          return 1;
        },
      });
    waiting.dispatch(queue);
    expect(asked).toBe(1);
  });
});
