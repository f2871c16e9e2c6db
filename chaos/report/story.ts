import type { WorkloadRecord } from "../../src/core/workload/record.ts";
import type { CallLine, EntryLine, FaultLine, HistoryLine, Verdict, WorkLine } from "../history.ts";
import { callFactsOf } from "../validate/call-facts.ts";
import { claimsIn } from "../validate/effects.ts";
import { escapeText } from "./escape.ts";

/** How many workloads a report tells the story of, and how many lines of each. */
const STORIES_MAX = 20;
const LINES_MAX = 400;

/** One thing that happened, as a story tells it. */
interface Happening {
  readonly at: number;
  readonly kind: "call" | "work" | "version" | "fault";
  readonly who: string;
  readonly what: string;
  readonly detail: string;
  /** For a call: what became of it. */
  readonly tone?: string;
}

const shorten = (text: string, length: number): string => (text.length > length ? `${text.slice(0, length)}…` : text);

const textOf = (value: unknown): string => shorten(JSON.stringify(value) ?? "", 600);

/** Members of arguments that a story does without. */
const untold = new Set(
  "tenantId applicationId environment definitionRevision trigger input authorization requestedBy sessionId".split(" "),
);

const toldArguments = (args: unknown): string =>
  typeof args === "object" && args !== null && !Array.isArray(args)
    ? textOf(Object.fromEntries(Object.entries(args).filter(([name]) => !untold.has(name))))
    : textOf(args);

/** A call as a story tells it: no payload, and of an answered workload only where it stands. */
function tellCall(line: CallLine): readonly Happening[] {
  const { outcome, call, caller, node, startedAt, endedAt, requestId, id } = line;
  const { workload, ...answer } = (outcome.kind === "acknowledged" ? outcome.answer : {}) as {
    readonly workload?: { readonly state?: string };
  };
  const became =
    outcome.kind === "acknowledged"
      ? `acknowledged${outcome.revision === undefined ? "" : ` at ${outcome.revision}`}: ${textOf(workload === undefined ? answer : { ...answer, state: workload.state })}`
      : outcome.kind === "refused"
        ? `${outcome.code}${outcome.definite ? "" : " (not definite)"} ${textOf(outcome.details) || ""}`
        : `no answer: ${outcome.cause}`;
  const who = node === undefined ? caller : `${caller} → ${node}`;
  const named = requestId === undefined ? "" : ` (${shorten(requestId, 40)})`;
  return [
    { at: startedAt, kind: "call", who, what: `${call} ${id} begins${named}`, detail: toldArguments(line.arguments) },
    { at: endedAt, kind: "call", who, what: `${call} ${id} ends`, detail: became, tone: outcome.kind },
  ];
}

function tellEntry(entry: EntryLine, record: WorkloadRecord, before: WorkloadRecord | undefined): Happening {
  const events = record.history.slice(before?.history.length ?? 0);
  const moves = events.map(({ to, actor, evidence }) => `${to} by ${actor} ${textOf(evidence)}`);
  const claim = record.currentClaim;
  const held =
    claim === undefined ? "no claim" : `${claim.workerId} holds token ${claim.fencingToken} until ${claim.expiresAt}`;
  const action = entry.provenance["action"] ?? "";
  const node = entry.provenance["node"] ?? "";
  return {
    at: entry.at,
    kind: "version",
    who: node === "" ? "store" : `store, by ${node}`,
    what: `revision ${entry.revision} ${action}: ${record.state}`,
    detail: `${moves.length === 0 ? "no event" : moves.join("; ")}; ${held}; ${entry.operations.at(-1) ?? ""}`,
  };
}

const tellWork = ({ at, worker, event, fencingToken }: WorkLine): Happening => ({
  at,
  kind: "work",
  who: worker,
  what: event,
  detail: `token ${fencingToken}`,
});

const tellFault = ({ at, fault, target, phase, details }: FaultLine): Happening => ({
  at,
  kind: "fault",
  who: target,
  what: `${fault} ${phase === "begin" ? "begins" : "ends"}`,
  detail: details === undefined ? "" : textOf(details),
});

/** The workloads that a call is about: those that it names, and those that it was given. */
function workloadsOf(line: CallLine): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { call, workloadId, answer } of callFactsOf(line)) {
    if (workloadId !== undefined) found.add(workloadId);
    for (const claim of claimsIn(call, answer)) found.add(claim.workloadId);
  }
  return found;
}

/** Gathers what happened to the workloads that broke a rule. */
export class StoryCollector {
  readonly #stories = new Map<string, Happening[]>();
  readonly #before = new Map<string, WorkloadRecord>();
  readonly #faults: Happening[] = [];

  constructor(verdicts: readonly Verdict[]) {
    for (const { violations } of verdicts)
      for (const { workloadId } of violations)
        if (workloadId !== undefined && this.#stories.size < STORIES_MAX) this.#stories.set(workloadId, []);
  }

  add(line: HistoryLine): void {
    if (line.line === "fault") this.#faults.push(tellFault(line));
    if (this.#stories.size === 0) return;
    if (line.line === "call") {
      for (const workloadId of workloadsOf(line)) this.#stories.get(workloadId)?.push(...tellCall(line));
    } else if (line.line === "work") this.#stories.get(line.workloadId)?.push(tellWork(line));
    else if (line.line === "entry" && line.record !== undefined) {
      const { workloadId } = line.record;
      this.#stories.get(workloadId)?.push(tellEntry(line, line.record, this.#before.get(workloadId)));
      if (this.#stories.has(workloadId)) this.#before.set(workloadId, line.record);
    }
  }

  /** Each story in the order of time, with the faults that happened meanwhile. */
  stories(): ReadonlyMap<string, readonly Happening[]> {
    const told = new Map<string, readonly Happening[]>();
    for (const [workloadId, story] of this.#stories) {
      const times = story.map(({ at }) => at);
      const from = Math.min(...times) - 5000;
      const until = Math.max(...times) + 5000;
      const meanwhile = this.#faults.filter(({ at }) => at >= from && at <= until);
      const all = [...story, ...meanwhile].sort((left, right) => left.at - right.at);
      told.set(workloadId, all.slice(0, LINES_MAX));
    }
    return told;
  }
}

function renderHappening({ at, kind, who, what, detail, tone }: Happening, start: number): string {
  const seconds = ((at - start) / 1000).toFixed(3);
  return `<tr class="${kind}${tone === undefined ? "" : ` ${tone}`}"><td class="time">${seconds}</td><td>${escapeText(who)}</td><td>${escapeText(what)}</td><td class="detail">${escapeText(detail)}</td></tr>`;
}

/** The stories of a report; empty when nothing broke a rule. */
export function renderStories(collector: StoryCollector, verdicts: readonly Verdict[], start: number): string {
  return [...collector.stories()]
    .map(([workloadId, story], index) => {
      const broken = verdicts.flatMap(({ validator, violations }) =>
        violations
          .filter((violation) => violation.workloadId === workloadId)
          .slice(0, 5)
          .map(({ message }) => `<li><b>${escapeText(validator)}</b> ${escapeText(message)}</li>`),
      );
      const rows = story.map((happening) => renderHappening(happening, start)).join("");
      return `<details class="story" id="${escapeText(workloadId)}"${index < 3 ? " open" : ""}><summary><code>${escapeText(workloadId)}</code> ${story.length} happenings</summary><ul>${broken.join("")}</ul><div class="scroll"><table class="happenings"><thead><tr><th>second</th><th>who</th><th>what</th><th>detail</th></tr></thead><tbody>${rows}</tbody></table></div></details>`;
    })
    .join("\n");
}
