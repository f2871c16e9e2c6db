import type { WorkloadRecord } from "../../src/core/workload/record.ts";
import type { EndLine, EntryLine, FaultLine, HistoryLine, LeftoverLine, ProbeLine, RunLine } from "../history.ts";
import type { ViewLine, WorkLine } from "../history.ts";
import { callFactsOf, type CallFact } from "./call-facts.ts";
import { Chain } from "./chain.ts";
import { claimsIn, isEffectOf } from "./effects.ts";
import type { Facts, FaultSpan, OutageSpan, Version } from "./facts.ts";
import { textOf } from "./fields.ts";
import { judgeParametersOf } from "./parameters.ts";

/** A history that can't be judged: it is damaged, or incomplete. */
export class HistoryError extends Error {
  override readonly name = "HistoryError";
}

/** Calls whose effect in the store the validators look for. */
const changing = new Set(
  "admit claim claimNext start heartbeat checkpoint complete fail confirmCancel cancel timeout retry decide".split(" "),
);

/** An unanswered claimNext may take work this long after its caller gave up, ms. */
const CLAIM_LATE_MS = 120_000;

interface OpenSpan {
  readonly fault: string;
  readonly target: string;
  readonly from: number;
}

/** Takes the lines of a history in, one by one and once, and keeps of each what the validators need. */
export class Collector {
  #run: RunLine | undefined;
  #end: EndLine | undefined;
  readonly #calls: CallFact[] = [];
  readonly #work: WorkLine[] = [];
  readonly #faults: FaultSpan[] = [];
  readonly #openFaults: OpenSpan[] = [];
  readonly #outages: OutageSpan[] = [];
  readonly #notReadySince = new Map<string, number>();
  readonly #chains = new Map<string, Chain>();
  readonly #views: ViewLine[] = [];
  readonly #leftovers: LeftoverLine[] = [];
  #claimsByWorker: Map<string, Version[]> | undefined;

  add(line: HistoryLine): void {
    switch (line.line) {
      case "run":
        this.#run ??= line;
        return;
      case "end":
        this.#end = line;
        return;
      case "call":
        this.#calls.push(...callFactsOf(line));
        return;
      case "work":
        this.#work.push(line);
        return;
      case "fault":
        return this.#addFault(line);
      case "probe":
        return this.#addProbe(line);
      case "entry":
        if (line.record !== undefined) this.#addEntry(line, line.record);
        return;
      case "view":
        this.#views.push(line);
        return;
      case "leftover":
        this.#leftovers.push(line);
    }
  }

  /** Everything that was taken in, joined up. */
  facts(): Facts {
    if (this.#run === undefined) throw new HistoryError("the history does not say how the run was made");
    for (const { fault, target, from } of this.#openFaults)
      this.#faults.push({ fault, target, from, until: Number.POSITIVE_INFINITY });
    for (const [target, from] of this.#notReadySince)
      this.#outages.push({ target, from, until: Number.POSITIVE_INFINITY });
    const parameters = judgeParametersOf(this.#run.parameters);
    const effects = new Map<CallFact, Version[]>();
    const authors = new Map<Version, CallFact[]>();
    for (const call of this.#calls) {
      if (!changing.has(call.call)) continue;
      const found = this.#findEffects(call, parameters.clockErrorMaxMs);
      if (found.length > 0) effects.set(call, found);
      for (const version of found) {
        const known = authors.get(version);
        if (known === undefined) authors.set(version, [call]);
        else known.push(call);
      }
    }
    return {
      run: this.#run,
      end: this.#end,
      parameters,
      calls: this.#calls,
      work: this.#work,
      faults: this.#faults,
      outages: this.#outages,
      workloads: this.#chains,
      views: this.#views,
      leftovers: this.#leftovers,
      effectsOf: (call) => effects.get(call) ?? [],
      authorsOf: (version) => authors.get(version) ?? [],
    };
  }

  #addFault({ fault, target, phase, at }: FaultLine): void {
    if (phase === "begin") {
      this.#openFaults.push({ fault, target, from: at });
      return;
    }
    const index = this.#openFaults.findIndex((open) => open.fault === fault && open.target === target);
    const [open] = index < 0 ? [] : this.#openFaults.splice(index, 1);
    this.#faults.push({ fault, target, from: open?.from ?? at, until: at });
  }

  #addProbe({ target, at, ready }: ProbeLine): void {
    const since = this.#notReadySince.get(target);
    if (!ready) this.#notReadySince.set(target, since ?? at);
    else if (since !== undefined) {
      this.#notReadySince.delete(target);
      this.#outages.push({ target, from: since, until: at });
    }
  }

  #addEntry(entry: EntryLine, record: WorkloadRecord): void {
    const { workloadId } = record;
    let chain = this.#chains.get(workloadId);
    if (chain === undefined) {
      chain = new Chain(entry, record);
      this.#chains.set(workloadId, chain);
    }
    chain.add(entry, record, {
      stateOf: (other) => {
        const found = this.#chains.get(other)?.record;
        const near = found?.tenantId === record.tenantId && found.applicationId === record.applicationId;
        return near ? found.state : undefined;
      },
    });
  }

  /** Claims by the worker that got them, oldest first. */
  #claimsOf(workerId: string | undefined): readonly Version[] {
    if (this.#claimsByWorker === undefined) {
      this.#claimsByWorker = new Map();
      const claims = [...this.#chains.values()]
        .flatMap(({ versions }) => versions.filter(({ command }) => command === "claim"))
        .sort((left, right) => left.storedAt - right.storedAt);
      for (const version of claims) {
        const known = this.#claimsByWorker.get(version.claim?.workerId ?? "");
        if (known === undefined) this.#claimsByWorker.set(version.claim?.workerId ?? "", [version]);
        else known.push(version);
      }
    }
    return this.#claimsByWorker.get(workerId ?? "") ?? [];
  }

  /** The versions among which the effect of a call is to be found. */
  #candidatesOf(call: CallFact, clockErrorMs: number): readonly Version[] {
    const { workloadId, args } = call;
    if (call.call !== "claimNext") return workloadId === undefined ? [] : this.#versionsOf(workloadId);
    if (call.kind === "acknowledged")
      return claimsIn(call.call, call.answer).flatMap((claim) => this.#versionsOf(claim.workloadId));
    const claims = this.#claimsOf(textOf(args["workerId"]));
    const earliest = call.startedAt - clockErrorMs;
    const latest = call.endedAt + CLAIM_LATE_MS;
    const found: Version[] = [];
    for (let index = firstSince(claims, earliest); index < claims.length; index++) {
      const version = claims[index];
      if (version === undefined || version.storedAt > latest) break;
      const { tenantId, applicationId } = this.#chains.get(version.workloadId)?.record ?? {};
      if (tenantId === args["tenantId"] && applicationId === args["applicationId"]) found.push(version);
    }
    return found;
  }

  #versionsOf(workloadId: string): readonly Version[] {
    return this.#chains.get(workloadId)?.versions ?? [];
  }

  #findEffects(call: CallFact, clockErrorMs: number): Version[] {
    return this.#candidatesOf(call, clockErrorMs).filter((version) => {
      const chain = this.#chains.get(version.workloadId);
      return chain !== undefined && isEffectOf(call, version, chain);
    });
  }
}

/** The place of the first version that was stored at an instant or later. */
function firstSince(versions: readonly Version[], at: number): number {
  let low = 0;
  let high = versions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((versions[middle]?.storedAt ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
