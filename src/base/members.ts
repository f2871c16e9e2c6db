/** The members of a JSON object whose shape has not been checked yet. */
export type Members = Readonly<Record<string, unknown>>;

/** Whether a value is a JSON object: no array, and not null. */
export const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);
