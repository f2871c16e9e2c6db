import type { ClockOrigin } from "../run-clock.ts";
import type { Tenant } from "../system/tenants.ts";
import type { HttpTarget } from "./http-caller.ts";
import type { PlayWeights } from "./plays.ts";

/** What the traffic process is told when it starts. */
export interface TrafficSetting {
  readonly seed: number;
  /** How many plays run at once. */
  readonly lanes: number;
  /** Between two plays of a lane, at most, ms. */
  readonly breakMs: number;
  readonly weights: PlayWeights;
  readonly front: string;
  readonly raw: readonly { readonly name: string; readonly servers: readonly string[] }[];
  readonly record: string;
  readonly clock: ClockOrigin;
  /** A file that holds a {@link TrafficControl}, looked at several times a second. */
  readonly control: string;
  /** In secure mode: who there is, and the folder of whoever issues their grants. */
  readonly secure?: { readonly tenants: readonly Tenant[]; readonly folder: string };
}

/** What the runner says while the traffic runs. */
export interface TrafficControl {
  readonly nodes: readonly HttpTarget[];
  /** Nothing new is begun; the process ends when all that is under way has. */
  readonly ending: boolean;
}
