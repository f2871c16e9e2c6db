/** Texts that are kept for long: copies of their own, and one for all that are equal. */

/** How many different texts are remembered. Beyond it they are forgotten, which costs memory and nothing else. */
const SHARED_MAX = 50_000;
const shared = new Map<string, string>();

/** A text that equals the given one, and is no part of another: a text cut out of a larger one keeps all of that in memory. */
export function copyText<Text extends string>(text: Text): Text {
  const copy = Buffer.from(text, "latin1").toString("latin1");
  return (copy === text ? copy : Buffer.from(text, "utf16le").toString("utf16le")) as Text;
}

/** The one copy of a text that comes again and again. */
export function shareText<Text extends string>(text: Text): Text {
  const known = shared.get(text);
  if (known !== undefined) return known as Text;
  if (shared.size >= SHARED_MAX) shared.clear();
  const copy = copyText(text);
  shared.set(copy, copy);
  return copy;
}
