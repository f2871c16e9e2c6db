import type { CallName } from "../../src/authority/api.ts";

/** What a caller heard of one try. */
export type Heard =
  | { readonly kind: "answered"; readonly answer: unknown }
  | { readonly kind: "refused"; readonly code: string; readonly definite: boolean; readonly retry: boolean }
  /** The caller gave up waiting, or its answer was lost. */
  | { readonly kind: "lost" };

/** One call of one node. */
export interface Try {
  readonly nodeId: string;
  /** Virtual ms. */
  readonly startedAt: number;
  endedAt: number | undefined;
  heard: Heard;
}

/** One thing that somebody wanted once, however often it was tried. Its mark stands in whatever it leaves in a record. */
export interface Wish {
  readonly mark: string;
  readonly name: CallName;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The workload that it is about; absent for claimNext. */
  readonly workloadId: string | undefined;
  /** A repeat is safe: it bears a requestId, or is safe by nature. */
  readonly repeatable: boolean;
  readonly tries: Try[];
}

/** Everything that anybody asked for in a run, and what was heard. */
export class Ledger {
  readonly wishes: Wish[] = [];

  nextMark(): string {
    return `m${this.wishes.length}`;
  }

  open(wish: Omit<Wish, "tries">): Wish {
    const opened: Wish = { ...wish, tries: [] };
    this.wishes.push(opened);
    return opened;
  }
}

/** The answers that a wish was given. */
export const answersOf = (wish: Wish): readonly unknown[] =>
  wish.tries.flatMap(({ heard }) => (heard.kind === "answered" ? [heard.answer] : []));

/** Whether every try was refused in a way that says that nothing happened. */
export const surelyNothing = ({ tries }: Wish): boolean =>
  tries.length > 0 && tries.every(({ heard }) => heard.kind === "refused" && heard.definite);
