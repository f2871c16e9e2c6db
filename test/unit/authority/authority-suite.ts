/**
 * Goal: several authorities over one store keep the promises of contract 1 and 6.1, whichever node is asked and however
 * old its view is.
 * Method: one suite, run over each store, through the library alone as a script outside the repository would drive it.
 * A group of tests shares one cluster of three nodes; each test has a tenant and a stretch of time of its own.
 */
import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { assert } from "../../../src/base/assert.ts";
import { createTestCluster, type TestCluster } from "../../../src/testing.ts";
import { describeAdmission } from "./admission-promises.ts";
import { describeClaimNext } from "./claim-next-promises.ts";
import { describeContent } from "./content-promises.ts";
import { describePasses } from "./pass-promises.ts";
import { describeRaces } from "./race-promises.ts";
import { describeReading } from "./reading-promises.ts";
import { describeRepeats } from "./repeat-promises.ts";
import { describeStaleViews } from "./stale-view-promises.ts";
import type { Stage } from "./stage.ts";
import { describeWorkers } from "./worker-promises.ts";
import { describeWorkerRaces } from "./worker-race-promises.ts";

export type SuiteStore = "memory" | "jetstream";

const groups: readonly (readonly [string, (stage: Stage) => void])[] = [
  ["admission", describeAdmission],
  ["races", describeRaces],
  ["stale views", describeStaleViews],
  ["repeats", describeRepeats],
  ["claimNext", describeClaimNext],
  ["passes", describePasses],
  ["content", describeContent],
  ["reading", describeReading],
  ["workers", describeWorkers],
  ["races of workers", describeWorkerRaces],
];

/** Runs the suite over a store. */
export function describeAuthority(name: string, store: SuiteStore): void {
  describe.each(groups)(`authorities over ${name}: %s`, (_group, describeGroup) => {
    let cluster: TestCluster | undefined;
    const stage: Stage = {
      get cluster() {
        assert(cluster !== undefined, "the cluster is started before the tests");
        return cluster;
      },
    };

    beforeAll(async () => {
      cluster = await createTestCluster({ nodes: 3, store });
    });

    afterEach(async () => {
      for (const node of stage.cluster.nodes) await stage.cluster.release(node);
    });

    afterAll(async () => {
      await cluster?.close();
    });

    describeGroup(stage);
  });
}
