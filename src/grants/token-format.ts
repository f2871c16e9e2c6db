/** The `typ` of a grant's token (contract 4.1). */
export const GRANT_TYPE = "mandate-grant+jwt";
/** The one algorithm: EdDSA over Ed25519. */
export const GRANT_ALGORITHM = "EdDSA";
/** Longest token, bytes: it travels in a header. A delegated grant carries its parent's within. */
export const TOKEN_BYTES_MAX = 16 * 1024;
