import type { Answered, Answers, CallContext, CallName, ChangeEvent, Position, Readiness } from "../authority/api.ts";
import type { Access, WorkloadTraits } from "../authority/access.ts";
import type { Workload } from "../core/workload/record.ts";

/** What this door needs of an authority (contract 6.1). Calls reject with MandateError. */
export interface HttpAuthority {
  readonly nodeId: string;
  readonly shards: number;
  call<Name extends CallName>(name: Name, args: unknown, context?: CallContext): Promise<Answered<Answers[Name]>>;
  /** Whether this node's view has come to a position before the time was up. */
  waitForPosition(position: Position, timeoutMs: number): Promise<boolean>;
  /** The workload once it is settled, or as it stands when the time is up. */
  waitForSettled(workloadId: string, waitMs: number, context?: CallContext): Promise<Answered<Workload>>;
  /** Hands on every committed change from now on, in order within a shard, until the answered function is called. */
  watch(listener: (event: ChangeEvent) => void): () => void;
  /** The latest change of each workload after a revision per shard, in order within a shard. */
  changesSince(positions: readonly number[], matches: (event: ChangeEvent) => boolean): readonly ChangeEvent[];
  /** The revision of each shard that the view has come to. */
  position(): readonly number[];
  readiness(): Readiness;
  /** Decides what bearers may do. @throws MandateError AUTHORITY_NOT_READY while it can't. */
  access(): Pick<Access, "require" | "reaches" | "onFallen">;
  /** What constraints may ask of a workload that the view knows. */
  traitsOf(workloadId: string): WorkloadTraits | undefined;
}
