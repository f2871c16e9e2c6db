/**
 * Whether some object in a JSON text has a member twice. Readers disagree about which of the two counts, so a grant that
 * has one could say different things to different readers. The text must have been parsed before: it is valid JSON.
 */
export function hasDuplicateMember(json: string): boolean {
  const open: (Set<string> | undefined)[] = [];
  let expectsName = false;
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],]/g)) {
    if (token === "{") open.push(new Set());
    else if (token === "[") open.push(undefined);
    else if (token === "}" || token === "]") open.pop();
    const members = open.at(-1);
    if (expectsName && token.startsWith('"') && members !== undefined) {
      const name = JSON.parse(token) as string;
      if (members.has(name)) return true;
      members.add(name);
    }
    expectsName = token === "{" || (token === "," && members !== undefined);
  }
  return false;
}
