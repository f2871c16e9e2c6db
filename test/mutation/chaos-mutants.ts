import type { ChaosMutant } from "./mutant.ts";

/** Mutants of what the simulation has no part in: the real store and real clocks. */
export const chaosMutants: readonly ChaosMutant[] = [
  {
    name: "guard-not-sent",
    broken: "A write goes to the server without the revision that it builds on.",
    rule: "5.3",
    edits: [
      {
        file: "src/store/jetstream/prepared-commit.ts",
        find: `      headerLine("Nats-Expected-Last-Subject-Sequence", expected) +\n`,
        replace: "",
      },
    ],
    foundBy: ["complete-history"],
    scenario: "rolling",
    seed: 1,
    minutes: 0.4,
  },
  {
    name: "silence-taken-for-no",
    broken: "A write whose answer did not come is refused as if it could not have landed.",
    rule: "5.3",
    edits: [
      {
        file: "src/store/jetstream/attempt.ts",
        find: `return { kind: "lost", cause: "no answer in time" };`,
        replace: `return { kind: "unacceptable", cause: "no answer in time" };`,
      },
      {
        file: "src/store/jetstream/attempt.ts",
        find: `return { kind: "lost", cause: "the connection broke before the answer" };`,
        replace: `return { kind: "unacceptable", cause: "the connection broke before the answer" };`,
      },
    ],
    foundBy: ["refused-effects"],
    scenario: "partitions",
    seed: 1,
    minutes: 1,
  },
  {
    name: "lagging-replica-believed",
    broken: "A read is answered by whichever replica comes first, however far it lags behind.",
    rule: "5.3",
    edits: [
      {
        file: "src/store/jetstream/reader.ts",
        find: `if (Number(closing.get("Nats-UpTo-Sequence")) < newness.revision) return { kind: "old" };`,
        replace: "",
      },
      {
        file: "src/store/jetstream/reader.ts",
        find: `if (mark === undefined || mark.revision < newness.barrier) return { kind: "old" };`,
        replace: "",
      },
    ],
    foundBy: ["true-refusals"],
    scenario: "partitions",
    seed: 1,
    minutes: 0.5,
  },
  {
    name: "interruption-skipped",
    broken: "What is committed while a follower is broken off is never delivered to it.",
    rule: "5.4",
    edits: [
      {
        file: "src/store/jetstream/consumer.ts",
        find: `{ deliver_policy: "by_start_sequence", opt_start_seq: after + 1 }`,
        replace: `{ deliver_policy: "new" }`,
      },
    ],
    foundBy: ["equal-views"],
    scenario: "leader-kills",
    seed: 1,
    minutes: 0.5,
  },
  {
    name: "own-clock-believed",
    broken: "A node judges leases by its machine's clock, however far that is from the store's.",
    rule: "5.5",
    edits: [
      {
        file: "src/authority/parts.ts",
        find: "const now = clock === undefined ? () => storeTime.now() : () => clock.now();",
        replace: "const now = clock === undefined ? () => wall.now() : () => clock.now();",
      },
      {
        file: "src/authority/parts.ts",
        find: "const clockSkewMaxMs = options.clockSkewMaxMs ?? 2000;",
        replace: "const clockSkewMaxMs = Number.POSITIVE_INFINITY;",
      },
    ],
    foundBy: ["timely-passes"],
    scenario: "clocks",
    seed: 1,
    minutes: 0.5,
  },
  {
    name: "revocations-unknown-to-nats",
    broken: "Who asks over NATS is let do what his grant said before it was revoked.",
    rule: "4.2",
    edits: [
      {
        file: "src/authority/access.ts",
        find: `      revocations: projection.revocations,\n      request: {`,
        replace: `      revocations: ask.from.door === "nats" ? { fateOf: () => undefined } : projection.revocations,\n      request: {`,
      },
    ],
    foundBy: ["revoked-means-over"],
    scenario: "grants",
    seed: 3,
    minutes: 0.5,
  },
  {
    name: "scope-of-the-query",
    broken: "A list is of the tenant that the query names, whoever's the grant is.",
    rule: "4.3",
    edits: [
      {
        file: "src/http/access.ts",
        find: `    if (query.get(name)?.some((value) => value !== bearer.grant[name]) === true) throw foreign(name);\n    bound.set(name, [bearer.grant[name]]);`,
        replace: `    bound.set(name, query.get(name) ?? [bearer.grant[name]]);`,
      },
      {
        file: "src/http/access.ts",
        find: `  return { ...caller, scope: { tenantId, applicationId }, grant: snapshotOf(grant, chain) };`,
        replace: `  return { ...caller, ...(scope === undefined ? {} : { scope }), grant: snapshotOf(grant, chain) };`,
      },
      {
        file: "src/http/access.ts",
        find: `  if (bearer === undefined) return () => true;\n  const from`,
        replace: `  return () => true;\n  const from`,
      },
    ],
    foundBy: ["tenants-apart"],
    scenario: "grants",
    seed: 3,
    minutes: 0.5,
  },
];
