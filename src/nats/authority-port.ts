import type { Access } from "../authority/access.ts";
import type { Answered, Answers, CallContext, CallName } from "../authority/api.ts";

/** What this door needs of an authority (contract 6.1). Calls reject with MandateError, at once while it is not ready. */
export interface WorkerAuthority {
  readonly nodeId: string;
  call<Name extends CallName>(name: Name, args: unknown, context?: CallContext): Promise<Answered<Answers[Name]>>;
  /** Decides what bearers may do. @throws MandateError AUTHORITY_NOT_READY while it can't. */
  access(): Pick<Access, "require" | "mayTake" | "onFallen">;
}
