import type { WorkloadRecord } from "../../core/workload/record.ts";
import type { PlacementPolicy } from "../../core/worker/record.ts";

/** What a workload asks of whoever is given it: workloads with the same needs stand in one lane of the queue. */
export interface Needs {
  readonly definitionId: string;
  readonly capabilities: readonly string[];
  readonly placement?: PlacementPolicy | undefined;
  /** What the constraints of a grant may ask of work that is handed out by the queue (contract 4.1). */
  readonly environment?: string;
  readonly connectionEnabled?: boolean;
  readonly contractVersion?: number;
}

/** What a worker may be given. */
export interface Ability {
  /** Workers of one name may be given the same. It may change while a worker waits. */
  readonly name: string;
  accepts(needs: Needs): boolean;
}

/** The needs of a workload. */
export const needsOf = (record: WorkloadRecord): Needs => ({
  definitionId: record.definitionId,
  capabilities: record.capabilities,
  placement: record.placement,
  environment: record.environment,
  connectionEnabled: record.connectionScopes.length > 0,
  contractVersion: record.contractVersion,
});

/** The lane that a workload stands in. */
export const laneOf = (needs: Needs): string => {
  const { definitionId, capabilities, placement, environment, connectionEnabled, contractVersion } = needs;
  return JSON.stringify([definitionId, capabilities, placement, environment, connectionEnabled, contractVersion]);
};

/** What is left of an ability under a grant. `name` tells grants apart that let through different work. */
export const abilityWithin = (
  ability: Ability,
  { name, accepts }: { readonly name: string; readonly accepts: (needs: Needs) => boolean },
): Ability => ({
  get name() {
    return JSON.stringify([ability.name, name]);
  },
  accepts: (needs) => ability.accepts(needs) && accepts(needs),
});

/** The ability of a worker that nothing is known of but its capabilities: it is no place, so nothing that asks for one is for it. */
export function abilityOf(capabilities: readonly string[]): Ability {
  const held = new Set(capabilities);
  return {
    name: JSON.stringify([...held].sort()),
    accepts: (needs) => needs.placement === undefined && needs.capabilities.every((capability) => held.has(capability)),
  };
}
