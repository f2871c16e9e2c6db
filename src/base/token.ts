/**
 * Texts as tokens of a NATS subject or key: encoded injectively into `[A-Za-z0-9_-]` and `=XX` for any other UTF-8 byte.
 */
const plain = /^[A-Za-z0-9_-]+$/;

/** Encodes one token: the same text always gives the same token, different texts never do. The text is not empty. */
export function encodeToken(text: string): string {
  if (plain.test(text)) return text;
  let token = "";
  for (const byte of new TextEncoder().encode(text)) {
    const character = String.fromCharCode(byte);
    token += plain.test(character) ? character : `=${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return token;
}

/** Undoes {@link encodeToken}; `undefined` when the token is not one that it makes. */
export function decodeToken(token: string): string | undefined {
  if (plain.test(token)) return token;
  const bytes: number[] = [];
  for (let index = 0; index < token.length; index++) {
    const character = token.charAt(index);
    if (plain.test(character)) bytes.push(character.charCodeAt(0));
    else {
      const digits = token.slice(index + 1, index + 3);
      if (character !== "=" || !/^[0-9A-F]{2}$/.test(digits)) return undefined;
      bytes.push(Number.parseInt(digits, 16));
      index += 2;
    }
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
    return text.length > 0 && encodeToken(text) === token ? text : undefined;
  } catch {
    return undefined;
  }
}
