import { OPERATION_RING } from "./store.ts";
import type { Base, Commit, CommitOutcome, Entry, Put } from "./store.ts";

/**
 * Finding out what became of a commit (contract 5.3), as a machine without input or output: it is told what attempts and
 * reads brought back, and says what to do next. Whoever drives it owns the connection, the timers and the deadline.
 *
 * Two things are tracked. *Doubt*: some attempt may have landed, or may still land, though nobody said so. *Proof*: an
 * answer that was definite in itself, which leaves only the question whether an earlier try of the same commit had landed.
 * The identical commit is repeated until there is proof; then one snapshot decides by the ring of operation ids.
 *
 * A snapshot decides by what was committed in it, so even an old one can't lie: our id in a ring says that the commit
 * landed; a ring that reaches back to our base and lacks our id says that another commit took our base's place, for good.
 * What could be read wrongly from an old snapshot (an absent key, a guard of absence on a key that can vanish) counts only
 * from a fresh one. "Nothing has changed" never counts as an answer: the commit is repeated.
 *
 * `unreached` speaks of the attempts of this call alone: it can't know what an older call with the same id did. `committed`
 * and `refused` do speak of older calls too, as far back as the ring reaches.
 *
 * It is taken for granted that a key is written always with a time to live or never, that a request does not land later
 * than the shortest time to live after it was sent, and that the puts of one commit get consecutive revisions.
 */

/** What one attempt to write a commit brought back. */
export type AttemptReply =
  | { readonly kind: "stored"; readonly revisions: readonly number[] }
  /** The server recognised an earlier attempt of the same commit as stored. */
  | { readonly kind: "landed-earlier" }
  /** A guard did not hold where it was looked at; `revision` is what stood there, when the server said so. */
  | { readonly kind: "refused"; readonly revision?: number }
  /** The server can't hold such a commit: this attempt stored nothing. */
  | { readonly kind: "unacceptable"; readonly cause: string }
  /** No server took the attempt: it stored nothing. */
  | { readonly kind: "unreached"; readonly cause: string }
  /** No answer, or none that says anything: the attempt may have landed, or may still land. */
  | { readonly kind: "lost"; readonly cause: string };

/** What to do next. `failures` counts what went wrong so far: wait the longer the more, not at all at 0. */
export type ResolutionStep =
  | { readonly next: "attempt"; readonly failures: number }
  | { readonly next: "read"; readonly fresh: boolean; readonly failures: number }
  | { readonly next: "answer"; readonly outcome: CommitOutcome };

export class Resolution {
  readonly #commit: Commit;
  readonly #revisionMax: number;
  #doubt = false;
  #proof: "none" | "refused" | "landed" = "none";
  #failures = 0;
  #cause = "the deadline passed";

  constructor(commit: Commit) {
    this.#commit = commit;
    this.#revisionMax = guardMax(commit);
  }

  /** Every key whose entry a snapshot must have, or lack, to decide. */
  keys(): readonly string[] {
    const keys = new Set(this.#commit.puts.map((put) => put.key));
    for (const assertion of this.#commit.asserts ?? []) keys.add(assertion.key);
    return [...keys];
  }

  onReply(reply: AttemptReply): ResolutionStep {
    switch (reply.kind) {
      case "stored":
        return { next: "answer", outcome: { kind: "committed", revisions: reply.revisions } };
      case "landed-earlier":
        this.#proof = "landed";
        return { next: "read", fresh: false, failures: this.#failures };
      case "refused":
        return this.#onRefusal(reply.revision);
      case "unacceptable":
        if (!this.#doubt) return { next: "answer", outcome: reply };
        return this.#repeat(reply.cause);
      case "unreached":
        return this.#repeat(reply.cause);
      case "lost":
        this.#doubt = true;
        return this.#repeat(reply.cause);
    }
  }

  /** `entries`: one snapshot of {@link keys}; `fresh`: it is newer than the question. */
  onSnapshot(entries: ReadonlyMap<string, Entry>, fresh: boolean): ResolutionStep {
    const verdict = judge(this.#commit, entries, fresh);
    switch (verdict.kind) {
      case "landed":
        return this.#committed(entries);
      case "refused":
        return { next: "answer", outcome: { kind: "refused", newer: verdict.newer } };
      case "open":
        if (!fresh) return { next: "read", fresh: true, failures: this.#failures };
        this.#proof = this.#proof === "landed" ? "landed" : "none";
        return this.#repeat("nothing stands in the way, yet it was not stored");
      case "untold":
        if (!fresh) return { next: "read", fresh: true, failures: this.#failures };
        if (this.#proof === "landed") return this.#committed(entries);
        // No attempt of this call is in doubt: what an older call may have done is beyond the ring's reach.
        if (!this.#doubt) return { next: "answer", outcome: { kind: "refused", newer: verdict.newer } };
        return { next: "answer", outcome: { kind: "unknown", cause: `${OPERATION_RING} later operations hide it` } };
    }
  }

  /** The read that was asked for had no answer. */
  onReadFailed(cause: string): ResolutionStep {
    this.#failures += 1;
    this.#cause = cause;
    return { next: "read", fresh: true, failures: this.#failures };
  }

  /** Time is up: the most that can be said. */
  onDeadline(): CommitOutcome {
    if (this.#proof === "landed") return { kind: "committed", revisions: leastRevisions(this.#commit) };
    if (this.#doubt || this.#proof === "refused") return { kind: "unknown", cause: this.#cause };
    return { kind: "unreached", cause: this.#cause };
  }

  #onRefusal(revision: number | undefined): ResolutionStep {
    if (revision !== undefined && revision > this.#revisionMax) {
      this.#proof = "refused";
      return { next: "read", fresh: false, failures: this.#failures };
    }
    this.#doubt = true;
    if (revision === undefined && this.#failures < 2) return this.#repeat("refused without naming a revision");
    this.#failures += 1;
    this.#cause = "refused without proof of anything newer";
    return { next: "read", fresh: false, failures: this.#failures };
  }

  #repeat(cause: string): ResolutionStep {
    this.#failures += 1;
    this.#cause = cause;
    return { next: "attempt", failures: this.#failures };
  }

  #committed(entries: ReadonlyMap<string, Entry>): ResolutionStep {
    return { next: "answer", outcome: { kind: "committed", revisions: landedRevisions(this.#commit, entries) } };
  }
}

type Verdict =
  | { readonly kind: "landed" }
  /** It has not landed and can't any more. */
  | { readonly kind: "refused"; readonly newer: string }
  /** It had not landed, and as far as the snapshot shows it may. */
  | { readonly kind: "open" }
  /** It can't land any more, but whether it did is not to be seen. */
  | { readonly kind: "untold"; readonly newer: string };

/** Decides by one snapshot alone. */
function judge(commit: Commit, entries: ReadonlyMap<string, Entry>, fresh: boolean): Verdict {
  let newer: string | undefined;
  let absentBefore = false;
  for (const put of commit.puts) {
    const entry = entries.get(put.key);
    if (entry?.operations.includes(commit.operationId) === true) return { kind: "landed" };
    const standing = standingOf(put, entry, fresh);
    if (standing === "broken" || standing === "hidden") newer ??= put.key;
    if (standing === "broken" || standing === "unchanged") absentBefore = true;
  }
  for (const { key, revision } of commit.asserts ?? []) {
    const now = entries.get(key)?.revision ?? 0;
    if (now !== revision && (fresh || (revision > 0 && now > revision))) newer ??= key;
  }
  if (newer === undefined) return { kind: "open" };
  return absentBefore ? { kind: "refused", newer } : { kind: "untold", newer };
}

/**
 * How a put's key stands to its base. `broken`: moved on, surely without us. `hidden`: moved on, and whether by us is not
 * to be seen. `older`: the snapshot is from before the base, or may be.
 */
function standingOf(put: Put, entry: Entry | undefined, fresh: boolean): "unchanged" | "broken" | "hidden" | "older" {
  const base = put.base === "absent" ? 0 : put.base.revision;
  if (entry === undefined) {
    // A put that vanishes by itself leaves no trace of having been there.
    if (base === 0) return put.ttlMs === undefined ? "unchanged" : "older";
    if (!fresh) return "older";
    return put.ttlMs === undefined ? "broken" : "hidden";
  }
  if (entry.revision === base) return "unchanged";
  if (entry.revision < base) return "older";
  if (base === 0 && put.ttlMs !== undefined && !fresh) return "older";
  return reachesBack(put.base, entry.operations) ? "broken" : "hidden";
}

/** Whether a ring still holds what followed the base. */
function reachesBack(base: Base, ring: readonly string[]): boolean {
  const last = base === "absent" ? undefined : base.operations.at(-1);
  return last === undefined ? ring.length < OPERATION_RING : ring.includes(last);
}

/** The highest revision that a commit expects anywhere: a refusal that names a higher one proves that a guard is broken. */
function guardMax(commit: Commit): number {
  const puts = commit.puts.map((put) => (put.base === "absent" ? 0 : put.base.revision));
  return Math.max(0, ...puts, ...(commit.asserts ?? []).map((assertion) => assertion.revision));
}

/** Exact while any key of the commit still has it last; otherwise the least they can have been. */
function landedRevisions(commit: Commit, entries: ReadonlyMap<string, Entry>): readonly number[] {
  for (const [index, put] of commit.puts.entries()) {
    const entry = entries.get(put.key);
    if (entry?.operations.at(-1) !== commit.operationId) continue;
    return commit.puts.map((_, position) => entry.revision - index + position);
  }
  return leastRevisions(commit);
}

/**
 * A lower bound: what such a commit wrote is older than anything that followed, so a reader that takes it for its own
 * write never puts it above a newer entry.
 */
function leastRevisions(commit: Commit): readonly number[] {
  const first = guardMax(commit) + 1;
  return commit.puts.map((_, position) => first + position);
}
