import { compareRank, type Rank } from "./projected.ts";

/** Walks several walks, each in the order of rank, as one. */
export function* mergedRanks(walks: Iterable<Iterator<Rank>>): Generator<Rank, undefined> {
  const heads: { rank: Rank; readonly rest: Iterator<Rank> }[] = [];
  for (const rest of walks) {
    const head = rest.next();
    if (head.done !== true) heads.push({ rank: head.value, rest });
  }
  while (heads.length > 0) {
    const best = heads.reduce((first, head) => (compareRank(head.rank, first.rank) < 0 ? head : first));
    yield best.rank;
    const next = best.rest.next();
    if (next.done === true) heads.splice(heads.indexOf(best), 1);
    else best.rank = next.value;
  }
  return undefined;
}
