/** A block of addresses: the bits that all of them share. IPv4 addresses written as IPv6 are taken as IPv4. */
interface Block {
  readonly family: 4 | 6;
  readonly bits: string;
}

const toBits = (value: number, width: number): string => value.toString(2).padStart(width, "0");

function ipv4Bits(text: string): string | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255))
    return undefined;
  return parts.map((part) => toBits(Number(part), 8)).join("");
}

/** The groups of one side of `::`; the last may be an IPv4 address. */
function groupBits(text: string): string | undefined {
  if (text === "") return "";
  let bits = "";
  const groups = text.split(":");
  for (const [index, group] of groups.entries()) {
    const isLast = index === groups.length - 1;
    const found =
      isLast && group.includes(".")
        ? ipv4Bits(group)
        : /^[0-9a-f]{1,4}$/i.test(group)
          ? toBits(Number.parseInt(group, 16), 16)
          : undefined;
    if (found === undefined) return undefined;
    bits += found;
  }
  return bits;
}

function ipv6Bits(text: string): string | undefined {
  const sides = text.split("::");
  if (sides.length > 2) return undefined;
  const [head, tail] = sides.map(groupBits);
  if (head === undefined) return undefined;
  if (sides.length === 1) return head.length === 128 ? head : undefined;
  if (tail === undefined || head.length + tail.length > 112) return undefined;
  return head + "0".repeat(128 - head.length - tail.length) + tail;
}

const MAPPED = `${"0".repeat(80)}${"1".repeat(16)}`;

function addressOf(text: string): Block | undefined {
  const four = ipv4Bits(text);
  if (four !== undefined) return { family: 4, bits: four };
  const six = text.includes(":") ? ipv6Bits(text) : undefined;
  if (six === undefined) return undefined;
  return six.startsWith(MAPPED) ? { family: 4, bits: six.slice(MAPPED.length) } : { family: 6, bits: six };
}

/** Reads `10.0.0.0/8`, `fd00::/8` or a single address; `undefined` when the text is none of them. */
function parseBlock(text: string): Block | undefined {
  const [addressText = "", lengthText, ...rest] = text.split("/");
  const address = addressOf(addressText);
  if (address === undefined || rest.length > 0) return undefined;
  if (lengthText === undefined) return address;
  if (!/^(?:0|[1-9]\d{0,2})$/.test(lengthText) || Number(lengthText) > address.bits.length) return undefined;
  return { family: address.family, bits: address.bits.slice(0, Number(lengthText)) };
}

/** Whether a text is an address or a block of addresses. */
export const isNetwork = (text: string): boolean => parseBlock(text) !== undefined;

/** Whether one address, or block, lies within a block. What can't be read lies nowhere. */
export function isWithinNetwork(inner: string, outer: string): boolean {
  const [small, large] = [parseBlock(inner), parseBlock(outer)];
  return (
    small !== undefined && large !== undefined && small.family === large.family && small.bits.startsWith(large.bits)
  );
}
