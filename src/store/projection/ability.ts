import type { WorkloadRecord } from "../../core/workload/record.ts";
import type { PlacementPolicy } from "../../core/worker/record.ts";

/** What a workload asks of whoever is given it: workloads with the same needs stand in one lane of the queue. */
export interface Needs {
  readonly definitionId: string;
  readonly capabilities: readonly string[];
  readonly placement?: PlacementPolicy | undefined;
}

/** What a worker may be given. */
export interface Ability {
  /** Workers of one name may be given the same. */
  readonly name: string;
  accepts(needs: Needs): boolean;
}

/** The needs of a workload. */
export const needsOf = ({ definitionId, capabilities, placement }: WorkloadRecord): Needs => ({
  definitionId,
  capabilities,
  placement,
});

/** The lane that a workload stands in. */
export const laneOf = ({ definitionId, capabilities, placement }: Needs): string =>
  JSON.stringify([definitionId, capabilities, placement]);

/** The ability of a worker that nothing is known of but its capabilities: it is no place, so nothing that asks for one is for it. */
export function abilityOf(capabilities: readonly string[]): Ability {
  const held = new Set(capabilities);
  return {
    name: JSON.stringify([...held].sort()),
    accepts: (needs) => needs.placement === undefined && needs.capabilities.every((capability) => held.has(capability)),
  };
}
