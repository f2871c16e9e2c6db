import type { Labels, PlacementPolicy } from "./record.ts";

/** A placement policy as a request may give it: shape checked. */
export interface RequestedPlacement {
  readonly requiredLabels?: Labels | undefined;
  readonly affinity?: Labels | undefined;
  readonly antiAffinity?: Labels | undefined;
  readonly poolId?: string | undefined;
}

/** The policy with every default applied; nothing when it asks for nothing, so that absent and empty are the same. */
export function normalPlacement(requested: RequestedPlacement | undefined): PlacementPolicy | undefined {
  const { requiredLabels = {}, affinity = {}, antiAffinity = {}, poolId } = requested ?? {};
  const asks = [requiredLabels, affinity, antiAffinity].some((labels) => Object.keys(labels).length > 0);
  if (!asks && poolId === undefined) return undefined;
  return { requiredLabels, affinity, antiAffinity, ...(poolId === undefined ? {} : { poolId }) };
}
