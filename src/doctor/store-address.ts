import type { NodeConnectionOptions } from "@nats-io/transport-node";
import type { BucketOptions } from "../store/jetstream/bucket.ts";

/** Which store to look at, and how to reach it. */
export interface StoreAddress extends Omit<BucketOptions, "history"> {
  readonly servers: readonly string[];
  readonly connection?: NodeConnectionOptions | undefined;
}
