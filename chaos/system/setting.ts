/** Lengths that a run is made with: short ones, so that things expire within seconds. All in ms. */
export interface Lengths {
  readonly passIntervalMs: number;
  readonly commitDeadlineMs: number;
  readonly clockSkewMaxMs: number;
  readonly leaseMs: number;
}

export const lengths: Lengths = {
  passIntervalMs: 250,
  commitDeadlineMs: 5_000,
  clockSkewMaxMs: 2_000,
  leaseMs: 1_800,
};

/** What a scenario says of the system that it runs on. */
export interface SystemShape {
  /** Nodes at the start, and the most that it may be scaled to. */
  readonly nodes: number;
  readonly nodesMax: number;
  readonly shards: number;
  /** Data of one server on a small disk of its own, where the machine lets us make one. */
  readonly smallDisk: boolean;
  /** Nobody is answered without a grant. Default: open mode, in which everybody is believed. */
  readonly secure?: boolean;
}

export const TENANT = "chaos";
export const APPLICATIONS = ["alpha", "beta"] as const;
export const EPOCH = "chaos";
/** Only the harness's own raw workers have it: work that no worker process takes. */
export const RAW_CAPABILITY = "raw";
/** What the workers of the traffic say they run in: by it they are told from the worker processes. */
export const TRAFFIC_RUNTIME = "remote";
/** What workers of the registry are for: the first of them all, the second some. */
export const CREW_CAPABILITIES = ["crew", "craft"] as const;

export const streamOf = (shard: number): string => `KV_mandate_${EPOCH}_${shard}`;
