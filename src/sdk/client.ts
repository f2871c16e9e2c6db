import { randomUUID } from "node:crypto";
import { isErrorCode, MandateError } from "../core/errors.ts";
import type { Revocation, RevocationTarget } from "../core/grant/revocation.ts";
import type { Subject } from "../core/subject.ts";
import type { Workload } from "../core/workload/record.ts";
import { WAIT_MS_MAX } from "../wire/limits.ts";
import { parseShape } from "../wire/parse.ts";
import { getRequest } from "../wire/requests.ts";
import { subject as subjectShape } from "../wire/shapes.ts";
import type {
  Admitted,
  AdmitRequest,
  Decided,
  DecisionRequest,
  ItemAnswer,
  ListFilter,
  Outcome,
  Reason,
  StateAnswer,
  WorkloadPage,
} from "./answers.ts";
import { followChanges, type EventFilter, type FollowedEvent } from "./change-events.ts";
import { requireExactJson } from "./exact-json.ts";
import { checkToken } from "./grant-token.ts";
import { HttpTransport, type HttpAnswer, type HttpCall } from "./http-transport.ts";
import { errorOfProblem } from "./problem.ts";

export interface ClientOptions {
  /** Address of a node or of what stands in front of several, such as `http://127.0.0.1:7700`. */
  readonly url?: string;
  /** Addresses of several nodes; the client goes on to the next when one fails. */
  readonly servers?: readonly string[];
  /** The grant that goes with every call, until {@link Client.useToken}. Not needed in open mode. */
  readonly token?: string;
  /** In whose name the calls are made while the nodes run in open mode (`X-Mandate-Subject`). */
  readonly subject?: Subject;
  /** How long a call is repeated before it is given up, ms. Default 30,000. */
  readonly deadlineMs?: number;
  /** How long one try of a call may take, ms. Default 10,000. */
  readonly tryTimeoutMs?: number;
}

/** Part of a change of state made by an operator. */
export interface OperateOptions {
  readonly reason?: string;
  readonly requestId?: string;
}

/** What is to be revoked (contract 4.2). */
export interface RevokeRequest {
  readonly target: RevocationTarget;
  readonly reason?: string;
  readonly requestId?: string;
}

const REVISION_HEADER = "mandate-revision";
const MIN_REVISION_HEADER = "mandate-min-revision";

const invalid = (path: string, rule: string): MandateError =>
  new MandateError("WORKLOAD_INVALID", `${path} ${rule}`.toWellFormed(), {
    details: { paths: [path], issues: [{ path, message: rule }] },
  });

/** @throws MandateError `WORKLOAD_INVALID` for what can't be sent, or would lead elsewhere. */
function workloadPath(workloadId: string, rest = ""): string {
  const parsed = parseShape(getRequest, { workloadId });
  if (!parsed.ok) throw MandateError.of(parsed.error);
  if (/^\.{1,2}$/.test(workloadId)) throw invalid("workloadId", "can't be a part of a path");
  return `/v1/workloads/${encodeURIComponent(workloadId)}${rest}`;
}

function listQuery(given: ListFilter): URLSearchParams {
  requireExactJson(given);
  const { state, requestedBy, ...filter } = given;
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, String(value));
  for (const one of typeof state === "string" ? [state] : (state ?? [])) query.append("state", one);
  if (requestedBy !== undefined) query.set("requestedBy", `${requestedBy.kind}:${requestedBy.id}`);
  return query;
}

/** An item of a batch as it came, its refusal as the error that the single call would have thrown. */
function itemAnswer(item: unknown): ItemAnswer<Admitted> {
  const answer = item as { ok: true } & Admitted;
  if (answer.ok) return answer;
  const { error } = item as { readonly error?: { readonly code?: unknown; readonly status?: unknown } };
  const status = typeof error?.status === "number" ? error.status : isErrorCode(error?.code) ? 400 : 500;
  return { ok: false, error: errorOfProblem(status, error) };
}

/**
 * A requester's, approver's and operator's client over HTTP (contract 6.2, 6.4). Refusals reject with the
 * {@link MandateError} that the authority gave. Calls that change something carry a requestId and are repeated on a lost
 * answer, at another node if there is one, without a second effect. What this client has written it also reads: its
 * reads wait for the revision of its last change, whichever node serves them.
 */
export class Client {
  readonly #transport: HttpTransport;
  #revision: string | undefined;

  constructor(transport: HttpTransport) {
    this.#transport = transport;
  }

  /**
   * The grant that goes with every call from now on, repeats included: in time before the last one expires.
   *
   * @throws MandateError `WORKLOAD_INVALID` when it can't be a grant.
   */
  useToken(token: string): void {
    checkToken(token);
    this.#transport.useToken(token);
  }

  /** Admits a workload, or answers the one that the same request admitted before (contract 1.7). */
  async admit(request: AdmitRequest): Promise<Admitted> {
    return (await this.#post("/v1/workloads", { requestId: randomUUID(), ...request })) as Admitted;
  }

  /** Admits up to 1,000 workloads; each is answered on its own. Rejects only when the whole call fails. */
  async admitMany(requests: readonly AdmitRequest[]): Promise<readonly ItemAnswer<Admitted>[]> {
    const body = requests.map((request) => ({ requestId: randomUUID(), ...request }));
    const answer = await this.#post("/v1/workloads/batch", body);
    return (Array.isArray(answer) ? answer : []).map(itemAnswer);
  }

  async get(workloadId: string): Promise<Workload> {
    return (await this.#read(workloadPath(workloadId))) as Workload;
  }

  /** One page, ordered by priority and age; `cursor` of the answer asks for the next. */
  async list(filter: ListFilter = {}): Promise<WorkloadPage> {
    return (await this.#read("/v1/workloads", { query: listQuery(filter) })) as WorkloadPage;
  }

  /**
   * Waits up to `waitMs` (default: one minute) for the workload to settle, and answers how it stands then.
   */
  async result(
    workloadId: string,
    options: { readonly waitMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<Outcome> {
    const deadline = performance.now() + (options.waitMs ?? WAIT_MS_MAX);
    for (;;) {
      const waitMs = Math.max(0, Math.min(WAIT_MS_MAX, Math.round(deadline - performance.now())));
      const query = new URLSearchParams({ waitMs: String(waitMs) });
      const outcome = (await this.#read(workloadPath(workloadId, "/result"), {
        query,
        waitMs,
        signal: options.signal,
      })) as Outcome;
      if (outcome.settled || performance.now() >= deadline) return outcome;
    }
  }

  /** Everything that keeps the workload from running now; nothing when a worker could claim it. */
  async explain(workloadId: string): Promise<readonly Reason[]> {
    const answer = (await this.#read(workloadPath(workloadId, "/explain"))) as { readonly reasons: readonly Reason[] };
    return answer.reasons;
  }

  /** What waits for a decision that this client's subject may take. */
  async approvals(
    filter: Pick<ListFilter, "tenantId" | "applicationId" | "limit" | "cursor"> = {},
  ): Promise<WorkloadPage> {
    return (await this.#read("/v1/approvals", { query: listQuery(filter) })) as WorkloadPage;
  }

  /** Takes the decision in the name of this client's subject (contract 1.9). */
  async decide(workloadId: string, decision: DecisionRequest): Promise<Decided> {
    const body = { requestId: randomUUID(), ...decision };
    return (await this.#post(workloadPath(workloadId, "/decision"), body)) as Decided;
  }

  async cancel(workloadId: string, options: OperateOptions = {}): Promise<StateAnswer> {
    return this.#operate(workloadId, "cancel", options);
  }

  /** Grants one more attempt to work that ended without success (contract 1.10). */
  async retry(workloadId: string, options: OperateOptions = {}): Promise<StateAnswer> {
    return this.#operate(workloadId, "retry", options);
  }

  async timeout(workloadId: string, options: OperateOptions = {}): Promise<StateAnswer> {
    return this.#operate(workloadId, "timeout", options);
  }

  /** Ends grants for good (contract 4.2): at every node from the next call on that follows the answer. */
  async revoke(request: RevokeRequest): Promise<Revocation> {
    return (await this.#post("/v1/grants/revocations", { requestId: randomUUID(), ...request })) as Revocation;
  }

  /** Committed changes as they happen; see {@link followChanges}. */
  events(filter: EventFilter = {}): AsyncGenerator<FollowedEvent, void> {
    return followChanges(this.#transport, filter);
  }

  async #operate(workloadId: string, verb: string, options: OperateOptions): Promise<StateAnswer> {
    const body = { requestId: randomUUID(), ...options };
    return (await this.#post(workloadPath(workloadId, `/${verb}`), body)) as StateAnswer;
  }

  async #post(path: string, body: unknown): Promise<unknown> {
    const answer = await this.#transport.call({ method: "POST", path, body: requireExactJson(body) });
    this.#revision = answer.headers.get(REVISION_HEADER) ?? this.#revision;
    return bodyOf(answer);
  }

  async #read(path: string, rest: Pick<HttpCall, "query" | "waitMs" | "signal"> = {}): Promise<unknown> {
    const headers = this.#revision === undefined ? {} : { [MIN_REVISION_HEADER]: this.#revision };
    return bodyOf(await this.#transport.call({ method: "GET", path, headers, ...rest }));
  }
}

function bodyOf(answer: HttpAnswer): unknown {
  if (answer.body !== undefined) return answer.body;
  throw new MandateError("INTERNAL_ERROR", "the answer is no JSON: is this address an authority's?", {
    details: { status: answer.status },
  });
}

/** A try waits beside its own time for as long as the call does, and no timer can be set beyond 2^31 − 1 ms. */
const TRY_TIMEOUT_MAX_MS = 86_400_000;

/** @throws MandateError `WORKLOAD_INVALID` naming the option. */
function checkSubject(subject: Subject): void {
  const parsed = parseShape(subjectShape, subject);
  if (parsed.ok) return;
  const { details } = parsed.error;
  const [first] = Array.isArray(details?.["paths"]) ? (details["paths"] as readonly string[]) : [];
  throw invalid(first === undefined || first === "" ? "subject" : `subject.${first}`, parsed.error.message);
}

/**
 * A client of one authority or several. Nothing is sent yet.
 *
 * @throws MandateError `WORKLOAD_INVALID` when no usable address is given, or another option can't be.
 */
export function connect(options: ClientOptions): Client {
  const urls = options.servers ?? (options.url === undefined ? [] : [options.url]);
  const { deadlineMs = 30_000, tryTimeoutMs = 10_000 } = options;
  if (!(deadlineMs >= 0)) throw invalid("deadlineMs", "is no number of milliseconds from 0");
  if (!(Number.isInteger(tryTimeoutMs) && tryTimeoutMs >= 1 && tryTimeoutMs <= TRY_TIMEOUT_MAX_MS))
    throw invalid("tryTimeoutMs", `is no whole number between 1 and ${TRY_TIMEOUT_MAX_MS}`);
  if (options.subject !== undefined) checkSubject(options.subject);
  if (options.token !== undefined) checkToken(options.token);
  return new Client(
    new HttpTransport({
      urls,
      token: options.token,
      subject: options.subject,
      deadlineMs,
      tryTimeoutMs,
    }),
  );
}
