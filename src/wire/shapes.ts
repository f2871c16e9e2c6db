import { z } from "zod";
import { utf8Length } from "../base/bytes.ts";
import { walkJson, type Json } from "../base/json.ts";
import { subjectKinds } from "../core/subject.ts";
import { workloadStates } from "../core/workload/states.ts";
import { IDENTIFIER_BYTES_MAX, SET_SIZE_MAX, TEXT_BYTES_MAX } from "./limits.ts";

/** The small shapes that requests are made of. */

// eslint-disable-next-line no-control-regex -- control characters are what it is about
const control = /[\u0000-\u001f\u007f]/;

const wellFormed = z.string().refine((text) => text.isWellFormed(), "has a lone surrogate");

/** A name chosen by somebody else: any well-formed text without control characters, 1 to 512 bytes. Kept exactly. */
export const identifier = wellFormed
  .refine((text) => text.length > 0, "must not be empty")
  .refine(
    (text) => text.length <= IDENTIFIER_BYTES_MAX && utf8Length(text) <= IDENTIFIER_BYTES_MAX,
    `has more than ${IDENTIFIER_BYTES_MAX} bytes`,
  )
  .refine((text) => !control.test(text), "has a control character");

/** An identifier that may be empty here, since a later check names it better. */
export const key = wellFormed.refine(
  (text) => text === "" || (utf8Length(text) <= IDENTIFIER_BYTES_MAX && (!control.test(text) || text.trim() === "")),
  `has a control character or more than ${IDENTIFIER_BYTES_MAX} bytes`,
);

/** Free text. */
export const text = wellFormed.refine(
  (value) => utf8Length(value) <= TEXT_BYTES_MAX,
  `has more than ${TEXT_BYTES_MAX} bytes`,
);

/** A whole number from `min` to `max`, both safe to carry as JSON. */
export const whole = (min: number, max: number = Number.MAX_SAFE_INTEGER): z.ZodType<number> =>
  z
    .number()
    .refine((value) => Number.isSafeInteger(value) && !Object.is(value, -0), "is not a whole number within ±(2^53 − 1)")
    .refine((value) => value >= min && value <= max, `is not between ${min} and ${max}`);

export const subject = z.strictObject({ kind: z.enum(subjectKinds), id: identifier });

export const state = z.enum(workloadStates);

/** A set of identifiers; order and repetition do not matter. */
export const identifiers = z.array(identifier).max(SET_SIZE_MAX);

/** Labels by name; a value may be empty. A name that is no member of a plain object would be lost, so it is refused. */
export const labels = z
  .unknown()
  .meta({ type: "object", additionalProperties: { type: "string" } })
  .refine(
    (value) => typeof value !== "object" || value === null || !Object.hasOwn(value, "__proto__"),
    "has a label named __proto__",
  )
  .pipe(z.record(identifier, key))
  .refine((value) => Object.keys(value).length <= SET_SIZE_MAX, `has more than ${SET_SIZE_MAX} labels`);

/** JSON that every reader gets back exactly (see {@link walkJson} for what is refused). */
export const exactJson: z.ZodType<Json> = z.custom<Json>().check((context) => {
  const { problem } = walkJson(context.value, "");
  if (problem === undefined) return;
  context.issues.push({
    code: "custom",
    input: undefined,
    message: problem.rule,
    path: problem.path === "" ? [] : [problem.path.replace(/^\./, "")],
  });
});
