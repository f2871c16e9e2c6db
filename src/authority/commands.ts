import { decideApproval, type DecideAnswer } from "../core/workload/approval.ts";
import { decideClaim, decideStart } from "../core/workload/claim.ts";
import type { Decision } from "../core/workload/decision.ts";
import { decideConfirmCancel, decideFail, type StateAnswer } from "../core/workload/failure.ts";
import type { Fence, Instant } from "../core/workload/fence.ts";
import {
  decideExecutionContext,
  decideHeartbeat,
  type ExecutionContext,
  type HeartbeatAnswer,
} from "../core/workload/lease.ts";
import { decideCancel, decideRetry, decideTimeout } from "../core/workload/operate.ts";
import { decideCheckpoint, decideComplete } from "../core/workload/progress.ts";
import type { Checkpoint, Claim, Payload, Result, WorkloadRecord } from "../core/workload/record.ts";
import type { WorkloadRules } from "../core/workload/rules.ts";
import type { Subject } from "../core/subject.ts";
import {
  checkpointRequest,
  claimRequest,
  completeRequest,
  contextRequest,
  decideRequest,
  failRequest,
  fenceRequest,
  heartbeatRequest,
  operateRequest,
} from "../wire/requests.ts";
import type { CallContext } from "./api.ts";
import { parseArguments } from "./arguments.ts";
import type { Work } from "./executor.ts";
import { markOf } from "./operation-ids.ts";
import type { Placing } from "./placing.ts";
import { dependencyStatesOf } from "./records.ts";
import { isRegisteredId } from "./worker-records.ts";
import { repeatCheckpoint, repeatClaim, repeatHeartbeat, repeatStart, repeatState } from "./repeats.ts";

const fenceOf = ({ workloadId, claimId, workerId, fencingToken }: Fence): Fence => ({
  workloadId,
  claimId,
  workerId,
  fencingToken,
});

interface Addressed {
  readonly workloadId: string;
  readonly workerId?: string;
  readonly claimId?: string;
  readonly actor?: string;
  readonly decider?: Subject;
  readonly requestId?: string | undefined;
}

type Repeat<Answer> = (record: WorkloadRecord, reference: number) => Answer | undefined;

/** Turns the arguments of a call on one workload into the work it asks for. */
export class Commands {
  readonly #rules: WorkloadRules;
  readonly #placing: Placing;

  constructor(rules: WorkloadRules, placing: Placing) {
    this.#rules = rules;
    this.#placing = placing;
  }

  claim(value: unknown, context: CallContext): Work<Claim> {
    const request = parseArguments(claimRequest, value);
    if (isRegisteredId(request.workerId)) {
      const { context: given, mark } = this.#addressed("claim", request, context);
      return this.#placing.claim(request, { context: given, mark });
    }
    return {
      ...this.#addressed("claim", request, context),
      decide: (seen, instant) =>
        decideClaim(seen.workload.record, request, { ...instant, dependencies: dependencyStatesOf(seen) }),
      repeat: repeatClaim,
    };
  }

  start(value: unknown, context: CallContext): Work<Claim> {
    const request = parseArguments(fenceRequest, value);
    return this.#onRecord("start", request, {
      context,
      repeat: repeatStart(request),
      decide: (record, instant) => decideStart(record, fenceOf(request), instant),
    });
  }

  heartbeat(value: unknown, context: CallContext): Work<HeartbeatAnswer> {
    const request = parseArguments(heartbeatRequest, value);
    const command = { fence: fenceOf(request), extendMs: request.extendMs };
    return this.#onRecord("heartbeat", request, {
      context,
      repeat: repeatHeartbeat(request),
      decide: (record, instant) => decideHeartbeat(record, command, instant),
    });
  }

  executionContext(value: unknown, context: CallContext): Work<ExecutionContext<Payload>> {
    const request = parseArguments(contextRequest, value);
    const command = { fence: fenceOf(request), secretReferences: request.secretReferences };
    return this.#onRecord("executionContext", request, {
      context,
      decide: (record, instant) => decideExecutionContext(record, command, instant),
    });
  }

  checkpoint(value: unknown, context: CallContext): Work<Checkpoint<Payload>> {
    const request = parseArguments(checkpointRequest, value);
    const command = { fence: fenceOf(request), state: request.state };
    return this.#onRecord("checkpoint", request, {
      context,
      repeat: repeatCheckpoint,
      decide: (record, instant) => decideCheckpoint(record, command, { ...instant, rules: this.#rules }),
    });
  }

  complete(value: unknown, context: CallContext): Work<Result<Payload>> {
    const request = parseArguments(completeRequest, value);
    const { resultId, output, artifacts, schemaVersion } = request;
    const command = { fence: fenceOf(request), resultId, output, artifacts, schemaVersion };
    return {
      ...this.#addressed("complete", request, context),
      resultId,
      decide: (seen, instant) =>
        decideComplete(seen.workload.record, command, {
          ...instant,
          rules: this.#rules,
          reservedFor: seen.reservedFor,
        }),
    };
  }

  fail(value: unknown, context: CallContext): Work<StateAnswer> {
    const request = parseArguments(failRequest, value);
    const command = { fence: fenceOf(request), kind: request.kind, error: request.error, effect: request.effect };
    return this.#onRecord("fail", request, {
      context,
      repeat: repeatState,
      decide: (record, instant) => decideFail(record, command, { ...instant, rules: this.#rules }),
    });
  }

  confirmCancel(value: unknown, context: CallContext): Work<StateAnswer> {
    const request = parseArguments(fenceRequest, value);
    return this.#onRecord("confirmCancel", request, {
      context,
      repeat: repeatState,
      decide: (record, instant) => decideConfirmCancel(record, fenceOf(request), instant),
    });
  }

  cancel(value: unknown, context: CallContext): Work<StateAnswer> {
    return this.#operate("cancel", value, { context, decide: decideCancel });
  }

  timeout(value: unknown, context: CallContext): Work<StateAnswer> {
    return this.#operate("timeout", value, { context, decide: decideTimeout });
  }

  retry(value: unknown, context: CallContext): Work<StateAnswer> {
    return this.#operate("retry", value, { context, decide: decideRetry });
  }

  decide(value: unknown, context: CallContext): Work<DecideAnswer> {
    const request = parseArguments(decideRequest, value);
    const { decider, outcome, reason, grantId, inputHash } = request;
    const command = { decider, outcome, reason, grantId, inputHash };
    const subject = context.subject ?? decider;
    return this.#onRecord("decide", request, {
      context: { ...context, subject },
      decide: (record, { now }) => decideApproval(record, command, { now, rules: this.#rules }),
    });
  }

  #operate(
    call: string,
    value: unknown,
    how: { readonly context: CallContext; readonly decide: typeof decideCancel },
  ): Work<StateAnswer> {
    const request = parseArguments(operateRequest, value);
    const command = { actor: request.actor, reason: request.reason };
    return this.#onRecord(call, request, {
      context: how.context,
      repeat: repeatState,
      decide: (record, { now }) => how.decide(record, command, { now, rules: this.#rules }),
    });
  }

  #onRecord<Answer>(
    call: string,
    request: Addressed,
    how: {
      readonly context: CallContext;
      readonly decide: (record: WorkloadRecord, instant: Instant) => Decision<Answer>;
      readonly repeat?: Repeat<Answer>;
    },
  ): Work<Answer> {
    return {
      ...this.#addressed(call, request, how.context),
      decide: (seen, instant) => how.decide(seen.workload.record, instant),
      ...(how.repeat === undefined ? {} : { repeat: how.repeat }),
    };
  }

  #addressed(
    call: string,
    request: Addressed,
    context: CallContext,
  ): { readonly workloadId: string; readonly context: CallContext; readonly mark?: string | undefined } {
    const { workloadId, requestId, workerId, claimId, actor, decider } = request;
    if (requestId === undefined) return { workloadId, context };
    const who = context.caller ?? workerId ?? actor ?? [decider?.kind, decider?.id];
    // Numbers that a worker counts anew for each claim must not meet those of another claim.
    return { workloadId, context, mark: markOf(JSON.stringify([who, claimId]), call, requestId) };
  }
}
