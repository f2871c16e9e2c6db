/** Whether two plain values (JSON, or a record of it) are equal part by part. A member that is `undefined` counts as absent. */
export function sameValue(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => sameValue(item, right[index]));
  }
  const leftMembers = left as { readonly [name: string]: unknown };
  const rightMembers = right as { readonly [name: string]: unknown };
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...names].every((name) => sameValue(leftMembers[name], rightMembers[name]));
}
