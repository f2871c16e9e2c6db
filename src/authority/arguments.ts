import type { z } from "zod";
import { MandateError } from "../core/errors.ts";
import { parseShape } from "../wire/parse.ts";

/** Checks arguments; throws the refusal. */
export function parseArguments<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  code: "WORKLOAD_INVALID" | "WORKER_INVALID" = "WORKLOAD_INVALID",
): z.output<Schema> {
  const parsed = parseShape(schema, value);
  if (!parsed.ok) throw MandateError.of({ ...parsed.error, code });
  return parsed.value;
}
