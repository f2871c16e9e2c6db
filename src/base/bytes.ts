const encoder = new TextEncoder();

/** UTF-8 bytes of a text. */
export const utf8 = (text: string): Uint8Array => encoder.encode(text);

/** How many bytes a text takes in UTF-8. */
export const utf8Length = (text: string): number => Buffer.byteLength(text, "utf8");
