import type { EntryLine } from "../history.ts";
import { beginsWith } from "../model/same.ts";

/** How many operation ids a record carries (contract 5.3). */
const RING = 32;

/** What is known of the version before. */
export interface LastOfChain {
  readonly revision: number;
  readonly operations: readonly string[];
}

/** Says where the chain of a key's versions is torn: each carries the operations of those before it. */
export function findTear(entry: EntryLine, last: LastOfChain | undefined): string | undefined {
  const { operations, revision } = entry;
  if (last !== undefined && revision <= last.revision)
    return `revision ${revision} comes after revision ${last.revision}`;
  const kept = (last?.operations ?? []).slice(1 - RING);
  if (operations.length === kept.length + 1 && beginsWith(operations, kept)) return undefined;
  if (last === undefined) return `the first version at hand, revision ${revision}, is not the first that was written`;
  return `revision ${revision} does not carry the operations of revision ${last.revision}: something in between is lost, or was overwritten`;
}
