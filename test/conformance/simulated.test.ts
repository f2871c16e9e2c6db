/**
 * Goal: the simulated store keeps the promises of the port, on a perfect day, behind a slow network, and while requests,
 * replies and answers go wrong in every way that a commit can be resolved from.
 * Method: the conformance suite over a log that drives its own virtual time, so that waiting costs nothing.
 */
import { calmFaults, roughFaults } from "../../src/store/simulated/faults.ts";
import type { Faults } from "../../src/store/simulated/faults.ts";
import { SimulatedLog } from "../../src/store/simulated/simulated-log.ts";
import { describeStore } from "./store-suite.ts";
import type { OpenStore } from "./store-suite.ts";

const opening =
  (faults: Partial<Faults>): OpenStore =>
  async ({ shards }) => {
    let now = 1_000_000;
    const log = new SimulatedLog({ clock: { now: () => now }, shards, seed: 7 });
    const clients = [log.client({ faults, commitDeadlineMs: 120_000, readDeadlineMs: 120_000 })] as const;
    const [store] = clients;
    return {
      store,
      another: async () => log.client({ faults, commitDeadlineMs: 120_000, readDeadlineMs: 120_000 }),
      close: () => store.close(),
      elapse: (ms) => {
        now += ms;
      },
    };
  };

describeStore("simulated", opening({}));
describeStore("simulated behind a slow network", opening(calmFaults));
// Delivery stays whole here: the suite says what is delivered when nothing breaks it off.
describeStore("simulated on a bad day", opening({ ...roughFaults, followLost: 0 }));
