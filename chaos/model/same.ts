/** Whether two JSON values are equal; a member that is undefined is as good as absent. */
export function same(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (Array.isArray(left)) {
    if (!Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => same(item, right[index]));
  }
  if (Array.isArray(right)) return false;
  return differingMembers(left, right).length === 0;
}

/** The names of the members in which two objects differ. */
export function differingMembers(left: object, right: object): readonly string[] {
  const one = left as Readonly<Record<string, unknown>>;
  const other = right as Readonly<Record<string, unknown>>;
  const differing: string[] = [];
  for (const name in one) if (!same(one[name], other[name])) differing.push(name);
  for (const name in other) if (!(name in one) && other[name] !== undefined) differing.push(name);
  return differing;
}

/** Whether a list begins with all of another. */
export const beginsWith = (list: readonly unknown[], beginning: readonly unknown[]): boolean =>
  list.length >= beginning.length && beginning.every((item, index) => same(item, list[index]));
