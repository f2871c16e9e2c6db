import type { SimulationMutant } from "./mutant.ts";

/** Mutants of how a decision becomes a commit, and of what a node believes about the log. */
export const commitMutants: readonly SimulationMutant[] = [
  {
    name: "guard-renewed",
    broken: "After a lost race the old decision is committed on the version that won.",
    rule: "5.3",
    edits: [
      {
        file: "src/authority/executor.ts",
        find: "      if (done !== undefined) return this.#conclude(decision, done);\n      seen = await this.#readAgain(work);",
        replace: `      const anew = { ...seen, workload: (await this.#readAgain(work)).workload };
      const forced = done ?? (await this.#tryCommit(work, { seen: anew, change: decision.change, mark }));
      if (forced !== undefined) return this.#conclude(decision, forced);
      seen = await this.#readAgain(work);`,
      },
    ],
    seeds: 20,
  },
  {
    name: "admission-overwrites",
    broken: "An admission is guarded by whatever stands under its key instead of by its absence.",
    rule: "1.7",
    edits: [
      {
        file: "src/authority/admissions.ts",
        find: `        base: "absent",`,
        replace: `        base: await records.fresh(workloadId, { scope: undefined }).then(({ workload }) => workload, () => "absent"),`,
      },
    ],
    seeds: 20,
  },
  {
    name: "refusal-from-the-view",
    broken: "A refusal is told on the node's view, which may be old, without a fresh read.",
    rule: "5.4",
    edits: [
      {
        file: "src/authority/executor.ts",
        find: "if (isFresh || (decision.ok && work.trustsView === true))",
        replace: "if (decision.change === undefined)",
      },
    ],
    seeds: 20,
  },
  {
    name: "fresh-read-without-barrier",
    broken: "A read that must be newer than the call is answered by whichever server comes first.",
    rule: "5.3",
    edits: [
      {
        file: "src/store/simulated/simulated-store.ts",
        find: "const stale = !fresh && chance(random, current().staleRead);",
        replace: "const stale = chance(random, current().staleRead);",
      },
    ],
    seeds: 20,
  },
  {
    name: "refusal-without-proof",
    broken: "A refused write counts as definite although the refusal names nothing newer than its guards.",
    rule: "5.3",
    edits: [
      {
        file: "src/store/resolution.ts",
        find: "if (revision !== undefined && revision > this.#revisionMax) {",
        replace: `if (revision !== undefined) return { next: "answer", outcome: { kind: "refused" } };
    if (revision !== undefined && revision > this.#revisionMax) {`,
      },
    ],
    seeds: 30,
  },
  {
    name: "doubt-forgotten",
    broken: "An attempt whose answer was lost counts as one that no server took.",
    rule: "5.3",
    edits: [
      {
        file: "src/store/resolution.ts",
        find: `      case "lost":
        this.#doubt = true;`,
        replace: `      case "lost":`,
      },
    ],
    seeds: 40,
  },
  {
    name: "ring-read-at-its-end",
    broken: "A commit that landed is recognised only while nobody has written the key after it.",
    rule: "5.3",
    edits: [
      {
        file: "src/store/resolution.ts",
        find: "if (entry?.operations.includes(commit.operationId) === true)",
        replace: "if (entry?.operations.at(-1) === commit.operationId)",
      },
    ],
    seeds: 80,
  },
  {
    name: "ring-forgotten",
    broken: "A node that built on its own commit forgets the operations before it.",
    rule: "5.3",
    edits: [
      {
        file: "src/authority/executor.ts",
        find: "operations: [...past.slice(1 - OPERATION_RING), request.operationId],",
        replace: "operations: [request.operationId],",
      },
    ],
    seeds: 20,
  },
  {
    name: "unknown-told-as-no",
    broken: "A commit of unknown outcome is refused as if nothing had been stored.",
    rule: "5.3",
    edits: [
      {
        file: "src/authority/failures.ts",
        find: `        "WORKLOAD_OUTCOME_UNKNOWN",`,
        replace: `        "WORKLOAD_STORAGE_FAILURE",`,
      },
    ],
    seeds: 40,
  },
  {
    name: "request-mark-ignored",
    broken: "The repeat of a request is not looked for among the operations of the record.",
    rule: "6.3",
    edits: [
      {
        file: "src/authority/operation-ids.ts",
        find: `return found === undefined ? undefined : Number(found.split(":")[1]);`,
        replace: "return found === undefined ? undefined : undefined;",
      },
    ],
    seeds: 30,
  },
  {
    name: "claim-memory-not-found",
    broken: "What a claimNext request took is kept where its repeat does not look, which so takes more.",
    rule: "2.4",
    edits: [
      {
        file: "src/store/keys.ts",
        find: `scoped("q", scope, encodeToken(operationId));`,
        replace: `scoped("q", scope, encodeToken(operationId + String(requestsKept++)));\nlet requestsKept = 0;`,
      },
    ],
    seeds: 60,
  },
  {
    name: "payload-not-written",
    broken: "A large payload is not written with the record that names it.",
    rule: "5.2",
    edits: [
      {
        file: "src/authority/executor.ts",
        find: "for (const { slot, json } of change.payloads)",
        replace: "for (const { slot, json } of change.payloads.slice(1))",
      },
    ],
    seeds: 20,
  },
  {
    name: "expected-taken-for-delivered",
    broken: "What a node tried to commit is shown for whatever the log delivers under that key.",
    rule: "5.4",
    edits: [
      {
        file: "src/store/projection/projection.ts",
        find: "if (expected === undefined || entry.operations.at(-1) !== expected.operationId) return undefined;",
        replace: "if (expected === undefined) return undefined;",
      },
    ],
    seeds: 20,
  },
  {
    name: "view-goes-back",
    broken: "Entries are applied as they come, older ones after newer ones.",
    rule: "5.4",
    edits: [
      {
        file: "src/store/projection/workload-index.ts",
        find: "if (known !== undefined && known.shard === next.shard && known.revision >= next.revision) return false;",
        replace: "",
      },
      {
        file: "src/store/projection/projection.ts",
        find: "if (known !== undefined && known.shard === workload.shard && known.revision >= workload.revision) return;",
        replace: "if (known === workload) return;",
      },
    ],
    seeds: 120,
  },
  {
    name: "resync-without-reset",
    broken: "A view that begins anew is told only what came after its former cursor.",
    rule: "5.4",
    edits: [
      {
        file: "src/store/simulated/follower.ts",
        find: "    this.#arrived = 0;\n",
        replace: "",
      },
    ],
    seeds: 20,
  },
];
