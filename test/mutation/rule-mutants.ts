import type { SimulationMutant } from "./mutant.ts";

/** Mutants of the rules: leases and clocks, claims, attempts, verdicts, results. */
export const ruleMutants: readonly SimulationMutant[] = [
  {
    name: "local-clock",
    broken: "Leases and deadlines end by the node's own wall clock.",
    rule: "5.5",
    edits: [
      {
        file: "src/authority/parts.ts",
        find: "const now = clock === undefined ? () => storeTime.now() : () => clock.now();",
        replace: "const now = clock === undefined ? () => wall.now() : () => clock.now();",
      },
    ],
    seeds: 20,
  },
  {
    name: "no-grace-after-an-outage",
    broken: "A lease runs out though no node could have taken its renewal.",
    rule: "5.5",
    edits: [
      {
        file: "src/core/workload/fence.ts",
        find: "return Math.max(claim.expiresAt, servingSince + lengthMs);",
        replace: "return Math.max(claim.expiresAt, lengthMs);",
      },
    ],
    seeds: 20,
  },
  {
    name: "fence-skipped",
    broken: "A worker's call is taken whatever claim it names.",
    rule: "1.8",
    edits: [
      {
        file: "src/core/workload/fence.ts",
        find: "  if (differing.length > 0)\n",
        replace: "  if (differing.length > 3)\n",
      },
    ],
    seeds: 30,
  },
  {
    name: "lease-end-ignored",
    broken: "A worker whose lease ran out may still write.",
    rule: "1.8",
    edits: [
      {
        file: "src/core/workload/fence.ts",
        find: "if (leaseEndsAt(claim, instant.servingSince) <= instant.now)",
        replace: "if (leaseEndsAt(claim, instant.servingSince) <= 0)",
      },
    ],
    seeds: 40,
  },
  {
    name: "recovery-not-checked-again",
    broken: "A claim is taken away although it was renewed after the pass found it run out.",
    rule: "1.11",
    edits: [
      {
        file: "src/core/workload/recovery.ts",
        find: "if (claim === undefined || !isLeaseLost(record, instant))",
        replace: "if (claim === undefined || !heldStates.includes(record.state))",
      },
    ],
    seeds: 120,
  },
  {
    name: "recovery-forgotten",
    broken: "Nobody looks for workers that are lost.",
    rule: "1.11",
    edits: [{ file: "src/authority/authority.ts", find: `    pass("recoverExpired");\n`, replace: "" }],
    seeds: 20,
  },
  {
    name: "one-attempt-too-many",
    broken: "Work may be tried once more than its policy says.",
    rule: "1.5",
    edits: [
      {
        file: "src/core/workload/retry-policy.ts",
        find: "record.retryPolicy.maxAttempts + rearmsOf(record);",
        replace: "record.retryPolicy.maxAttempts + rearmsOf(record) + 1;",
      },
    ],
    seeds: 40,
  },
  {
    name: "one-re-arm-too-many",
    broken: "An operator may re-arm work once more than its policy says.",
    rule: "1.10",
    edits: [
      {
        file: "src/core/workload/operate.ts",
        find: "if (operatorRetry > record.retryPolicy.maxAttempts)",
        replace: "if (operatorRetry > record.retryPolicy.maxAttempts + 1)",
      },
    ],
    seeds: 40,
  },
  {
    name: "approval-not-asked-for",
    broken: "Gated work that nobody has approved counts as approved.",
    rule: "1.8",
    edits: [
      {
        file: "src/core/workload/claim.ts",
        find: `record.approval.decision?.outcome !== "approved";`,
        replace: `record.approval.decision?.outcome === "rejected";`,
      },
    ],
    seeds: 60,
  },
  {
    name: "verdict-not-repeated",
    broken: "Whoever repeats a verdict is refused instead of being told the decision.",
    rule: "1.9",
    edits: [
      {
        file: "src/core/workload/approval.ts",
        find: "if (approval.decision !== undefined) return decideRepeated(approval.decision, command);",
        replace: "if (approval.decision === null) return decideRepeated(approval.decision, command);",
      },
    ],
    seeds: 120,
  },
  {
    name: "claimed-too-early",
    broken: "Delayed work may be claimed before its time.",
    rule: "1.8",
    edits: [
      {
        file: "src/core/workload/claim.ts",
        find: "if (nextAttemptAt !== undefined && nextAttemptAt > seen.at)",
        replace: "if (nextAttemptAt !== undefined && nextAttemptAt < 0)",
      },
    ],
    seeds: 20,
  },
  {
    name: "dependency-not-checked",
    broken: "Work may be claimed whatever has become of what it depends on.",
    rule: "1.8",
    edits: [
      {
        file: "src/core/workload/claim.ts",
        find: "  if (pending.length > 0)\n",
        replace: "  if (pending.length < 0)\n",
      },
    ],
    seeds: 20,
  },
  {
    name: "dependency-not-asserted",
    broken: "A claim is committed though a dependency has meanwhile left the state that was seen.",
    rule: "1.8",
    edits: [
      {
        file: "src/core/workload/claim.ts",
        find: "!terminalStates.includes(requiredState))",
        replace: "!terminalStates.includes(requiredState) && requiredState === undefined)",
      },
    ],
    seeds: 80,
  },
  {
    name: "result-id-not-reserved",
    broken: "A caller's result id is not reserved for the workload that has it.",
    rule: "1.8",
    edits: [
      {
        file: "src/core/workload/progress.ts",
        find: "...(needsReservation(record, command) ? { reservedResultId: resultId } : {}),",
        replace: "",
      },
    ],
    seeds: 80,
  },
  {
    name: "cancellation-not-committed",
    broken: "A cancellation is answered and not committed.",
    rule: "1.10",
    edits: [
      {
        file: "src/core/workload/operate.ts",
        find: `return { ok: true, answer: { state: to }, change: changeOf("cancel", next) };`,
        replace: `return { ok: true, answer: { state: next.state } };`,
      },
    ],
    seeds: 20,
  },
];
