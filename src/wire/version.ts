/** Version of the messages on HTTP and NATS: part of every path and subject. */
export const PROTOCOL_VERSION = 1;

/** Version of stored values, written into each of them as `v` (contract 5.2). */
export const FORMAT_VERSION = 1;
