import type { z } from "zod";
import { err, ok, type Result } from "../base/result.ts";
import { refuse, type Refusal } from "../core/errors.ts";

/** How many offending paths a refusal lists. */
const ISSUES_MAX = 50;

function renderPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else if (String(part).startsWith("[")) text += String(part);
    else text += text === "" ? String(part) : `.${String(part)}`;
  }
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

interface Issue {
  readonly path: string;
  readonly message: string;
}

function issuesOf(error: z.ZodError): readonly Issue[] {
  const issues: Issue[] = [];
  for (const issue of error.issues) {
    if (issues.length >= ISSUES_MAX) break;
    if (issue.code !== "unrecognized_keys") {
      issues.push({ path: renderPath(issue.path), message: issue.message });
      continue;
    }
    for (const name of issue.keys.slice(0, ISSUES_MAX - issues.length))
      issues.push({ path: renderPath([...issue.path, name]), message: "is not a member of this request" });
  }
  return issues;
}

/** Checks a value's shape. A refusal is WORKLOAD_INVALID, and its details list every offending path (contract 1.7). */
export function parseShape<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): Result<z.output<Schema>, Refusal> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return ok(parsed.data);
  const issues = issuesOf(parsed.error);
  const paths = issues.map(({ path }) => path);
  const first = issues[0];
  const what =
    first === undefined ? "the request" : `${first.path === "" ? "the request" : first.path}: ${first.message}`;
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  return err(refuse("WORKLOAD_INVALID", `${what}${more}`.toWellFormed(), { paths, issues }));
}
