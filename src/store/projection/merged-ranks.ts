import { compareRank, type Rank, type RankOrder } from "./projected.ts";

/** Walks several walks, each in the same order, as one. */
export function* mergedRanks(
  walks: Iterable<Iterator<Rank>>,
  compare: RankOrder = compareRank,
): Generator<Rank, undefined> {
  const heads: { rank: Rank; readonly rest: Iterator<Rank> }[] = [];
  for (const rest of walks) {
    const head = rest.next();
    if (head.done !== true) heads.push({ rank: head.value, rest });
  }
  while (heads.length > 0) {
    const best = heads.reduce((first, head) => (compare(head.rank, first.rank) < 0 ? head : first));
    yield best.rank;
    const next = best.rest.next();
    if (next.done === true) heads.splice(heads.indexOf(best), 1);
    else best.rank = next.value;
  }
  return undefined;
}
