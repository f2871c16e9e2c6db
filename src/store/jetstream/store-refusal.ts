/** Why a store could not be opened, or not as it was asked for. */
export type StoreRefusalReason =
  /** A stream's setting is not what the commit protocol or the options need; details name it. */
  | "setting-differs"
  /** The store was made with another number of shards, or for another epoch. */
  | "layout-differs"
  /** Some shards are there and others are not: data was lost, and making empty ones would hide it. */
  | "shards-missing"
  /** There is no such store, and it was not to be created. */
  | "absent"
  /** The store's format is newer than this program can read or write. */
  | "format-unsupported"
  /** NATS does not give the user a right that the store needs. */
  | "forbidden"
  /** The server lacks what the store needs. */
  | "server-unsupported"
  /** The options themselves are impossible. */
  | "options-invalid";

/** Opening a store was refused; nothing was changed. Trying again does not help until an operator acted. */
export class StoreRefusal extends Error {
  override readonly name = "StoreRefusal";
  readonly reason: StoreRefusalReason;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(reason: StoreRefusalReason, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.reason = reason;
    this.details = details;
  }
}
