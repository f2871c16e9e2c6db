import type { WorkloadRecord } from "../../src/core/workload/record.ts";
import type { CrashLine, EndLine, EntryLine, FaultLine, HistoryLine, LeftoverLine } from "../history.ts";
import type { ProbeLine, RunLine, ViewLine, WorkLine } from "../history.ts";
import { callFactsOf, type CallFact } from "./call-facts.ts";
import { Chain } from "./chain.ts";
import type { Facts, FaultSpan, OutageSpan } from "./facts.ts";
import { fieldsOf } from "./fields.ts";
import { GrantBook } from "./grant-facts.ts";
import { Matching } from "./matching.ts";
import { judgeParametersOf } from "./parameters.ts";
import { RegistryBook } from "./registry-book.ts";

/** A history that can't be judged: it is damaged, or incomplete. */
export class HistoryError extends Error {
  override readonly name = "HistoryError";
}

/** Whether a key is that of a worker, a slot or a pool. */
const isRegistryKey = (key: string): boolean => /^[ksp]\./.test(key);

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
  readonly #registry = new RegistryBook();
  readonly #grants = new GrantBook();
  readonly #views: ViewLine[] = [];
  readonly #leftovers: LeftoverLine[] = [];
  readonly #crashes: CrashLine[] = [];

  add(line: HistoryLine): void {
    switch (line.line) {
      case "run":
        this.#run ??= line;
        this.#grants.marks = Object.entries(fieldsOf(this.#run.parameters["tenantMarks"])) as [string, string][];
        return;
      case "end":
        this.#end = line;
        return;
      case "call":
        this.#calls.push(...callFactsOf(line));
        this.#grants.addCall(line);
        return;
      case "work":
        this.#work.push(line);
        return;
      case "fault":
        return this.#addFault(line);
      case "probe":
        return this.#addProbe(line);
      case "entry":
        this.#grants.addEntry(line);
        if (line.record !== undefined) this.#addEntry(line, line.record);
        else if (isRegistryKey(line.key)) this.#registry.add(line);
        return;
      case "view":
        this.#views.push(line);
        return;
      case "leftover":
        this.#leftovers.push(line);
        return;
      case "crash":
        this.#crashes.push(line);
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
    const matching = new Matching(this.#calls, this.#chains, { clockErrorMs: parameters.clockErrorMaxMs });
    return {
      run: this.#run,
      end: this.#end,
      parameters,
      calls: this.#calls,
      work: this.#work,
      faults: this.#faults,
      outages: this.#outages,
      workloads: this.#chains,
      registry: this.#registry,
      grants: this.#grants,
      views: this.#views,
      leftovers: this.#leftovers,
      crashes: this.#crashes,
      effectsOf: (call) => matching.effectsOf(call),
      authorsOf: (version) => matching.authorsOf(version),
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
      isSuperseded: (claim) => this.#registry.isSuperseded(claim),
    });
  }
}
