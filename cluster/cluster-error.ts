/** What can go wrong while real processes are found, started and watched. */
export type ClusterErrorCode =
  | "NATS_SERVER_UNAVAILABLE"
  | "NATS_SERVER_REFUSED"
  | "NO_FREE_PORT"
  | "DIRECTORY_IN_USE"
  | "PROCESS_EXITED"
  | "PROCESS_NOT_READY"
  | "PROCESS_NOT_STOPPED"
  | "PROGRAM_MISSING";

/** The one error of this folder: a code to branch on, a message for a person, and the facts as data. */
export class ClusterError extends Error {
  override readonly name = "ClusterError";
  readonly code: ClusterErrorCode;
  readonly details: { readonly [name: string]: unknown };

  constructor(
    code: ClusterErrorCode,
    message: string,
    options: {
      readonly details?: { readonly [name: string]: unknown };
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? {};
  }
}

/** The text of whatever was thrown, for messages and logs only: nothing branches on it. */
export const problemText = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

/** The system's code of a failed call (`ENOENT`, `EADDRINUSE` …), when it has one. */
export const systemCode = (thrown: unknown): string | undefined =>
  thrown instanceof Error && "code" in thrown && typeof thrown.code === "string" ? thrown.code : undefined;
