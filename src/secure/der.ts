/**
 * The few forms of ASN.1's distinguished encoding (X.690) that a certificate is made of: a tag, a length, and the bytes.
 */
export type Der = Buffer;

const element = (tag: number, ...parts: readonly Uint8Array[]): Der => {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  const digits = Buffer.from(length.toString(16).padStart(length > 0xffff ? 6 : length > 0xff ? 4 : 2, "0"), "hex");
  return Buffer.concat([Buffer.from([tag, 0x80 | digits.length]), digits, content]);
};

export const sequence = (...parts: readonly Uint8Array[]): Der => element(0x30, ...parts);
export const set = (...parts: readonly Uint8Array[]): Der => element(0x31, ...parts);
export const octets = (content: Uint8Array): Der => element(0x04, content);
export const utf8 = (text: string): Der => element(0x0c, Buffer.from(text, "utf8"));
export const truth = (): Der => element(0x01, Buffer.from([0xff]));

/** Bits, of which the last `unused` of the last byte do not count. */
export const bits = (content: Uint8Array, unused = 0): Der => element(0x03, Buffer.from([unused]), content);

/** A whole number that is not negative, big end first. */
export function integer(bytes: Uint8Array): Der {
  const first = bytes.findIndex((byte) => byte !== 0);
  const shortest = first < 0 ? Uint8Array.of(0) : bytes.slice(first);
  // The first bit is the sign.
  return element(0x02, (shortest[0] ?? 0) < 0x80 ? shortest : Uint8Array.of(0, ...shortest));
}

/** Wraps what it is given in a tag of the context. */
export const explicit = (number: number, ...parts: readonly Uint8Array[]): Der => element(0xa0 | number, ...parts);
/** A tag of the context in the place of the value's own. */
export const implicit = (number: number, content: Uint8Array): Der => element(0x80 | number, content);

/** An object identifier such as `1.2.840.10045.4.3.2`. */
export function identifier(dotted: string): Der {
  const [first = 0, second = 0, ...arcs] = dotted.split(".").map(Number);
  const groups = (arc: number): number[] => {
    const found = [arc & 0x7f];
    for (let left = Math.floor(arc / 0x80); left > 0; left = Math.floor(left / 0x80))
      found.unshift((left & 0x7f) | 0x80);
    return found;
  };
  return element(0x06, Uint8Array.from([first * 40 + second, ...arcs].flatMap(groups)));
}

/** An instant, epoch ms, to the second. Until 2049 with two digits of the year, as certificates must have it. */
export function instant(at: number): Der {
  const text = `${new Date(at).toISOString().replaceAll(/[-:T]/g, "").slice(0, 14)}Z`;
  return text < "2050" ? element(0x17, Buffer.from(text.slice(2))) : element(0x18, Buffer.from(text));
}
