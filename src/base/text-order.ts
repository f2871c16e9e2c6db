/** Orders texts by their code units, as every node and every machine does. */
export const compareText = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0);

/** Each text once, in the order of their code units. */
export const sortedSet = (items: readonly string[]): readonly string[] => [...new Set(items)].sort();
