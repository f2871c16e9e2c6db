/** The members of a JSON object of unknown shape. */
export type Fields = { readonly [name: string]: unknown };

const none: Fields = {};

/** The members of a value, or none. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : none;

/** The items of a value, or none. */
export const itemsOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** A text, or nothing. */
export const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** A number, or nothing. */
export const numberOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** The parts of a subject as one text, so that subjects can be compared. */
export function subjectText(value: unknown): string {
  const { kind, id } = fieldsOf(value);
  return JSON.stringify([kind, id]);
}

/** Who operates, as events name him: by id. */
export const actorOf = (value: unknown): string | undefined => textOf(value) ?? textOf(fieldsOf(value)["id"]);
