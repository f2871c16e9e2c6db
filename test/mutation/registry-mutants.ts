import type { SimulationMutant } from "./mutant.ts";

/** Mutants of what keeps workers within their capacity and pools within their limits. */
export const registryMutants: readonly SimulationMutant[] = [
  {
    name: "slot-not-looked-at",
    broken: "A claim takes a slot whether or not another claim holds it.",
    rule: "2.3",
    edits: [
      {
        file: "src/core/worker/slots.ts",
        find: "if (!held.has(index)) open.push(index);",
        replace: "open.push(index);",
      },
    ],
    seeds: 20,
    script: "registry",
  },
  {
    name: "slots-not-freed",
    broken: "The commit that ends a claim does not free its slots.",
    rule: "2.3",
    edits: [
      {
        file: "src/authority/slots.ts",
        find: "    if (places.length === 0) return [];\n",
        replace: "    if (places.length >= 0) return [];\n",
      },
    ],
    seeds: 20,
    script: "registry",
  },
  {
    name: "worker-not-asserted",
    broken: "A claim is committed though its worker has meanwhile been drained, replaced or given less room.",
    rule: "2.3",
    edits: [
      {
        file: "src/authority/slots.ts",
        find: "      asserts: seen.map(({ key, revision }) => ({ key, revision })),\n",
        replace: "      asserts: [],\n",
      },
    ],
    seeds: 150,
    script: "registry",
  },
  {
    name: "superseded-keep-their-work",
    broken: "The claims of a process stay when another takes its name.",
    rule: "2.2",
    edits: [
      {
        file: "src/authority/workers.ts",
        find: "    const slots = supersededSlots(workerRecords.seen(record));\n",
        replace: "    const slots = supersededSlots(workerRecords.seen(record)).slice(0, 0);\n",
      },
    ],
    seeds: 80,
    script: "registry",
  },
  {
    name: "grants-not-looked-at",
    broken: "A worker is given work that needs what it was not granted.",
    rule: "2.3",
    edits: [
      {
        file: "src/core/worker/eligibility.ts",
        find: "  const missing = missingFrom(record.grantedCapabilities, need.capabilities);\n",
        replace: "  const missing = missingFrom(need.capabilities, need.capabilities);\n",
      },
      {
        file: "src/core/workload/claim.ts",
        find: "  const missing = record.capabilities.filter((capability) => !command.capabilities.includes(capability));\n",
        replace: "  const missing = record.capabilities.filter(() => false);\n",
      },
    ],
    seeds: 40,
    script: "registry",
  },
];
