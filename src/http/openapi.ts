import { z } from "zod";
import { errorRegistry } from "../core/errors.ts";
import { PROBLEM_MEDIA_TYPE } from "../wire/problem.ts";
import { PROTOCOL_VERSION } from "../wire/version.ts";
import type { DocumentedAnswer, HttpRoute } from "./route.ts";
import { problem } from "./schemas.ts";

type Members = Record<string, unknown>;
type Mode = "open" | "secure";

/** A shape as JSON Schema; parts of it that JSON Schema can't say stay open. */
function schemaOf(shape: z.ZodType, io: "input" | "output"): Members {
  const { $schema: _, ...schema } = z.toJSONSchema(shape, { io, unrepresentable: "any", reused: "inline" });
  return schema;
}

const header = (name: string, description: string, schema: Members = { type: "string" }): Members => ({
  name,
  in: "header",
  required: false,
  description,
  schema,
});

const subjectHeader: Members = {
  ...header("X-Mandate-Subject", "Who asks, as kind:id, in UTF-8; %XX stands for a byte that a header can't carry."),
  required: true,
};
const minRevisionHeader = header(
  "Mandate-Min-Revision",
  "A Mandate-Revision of an earlier answer: waits up to 2 s until this node has seen it, else 503.",
);
const requestIdHeader = header(
  "Mandate-Request-Id",
  "Names the request, so that repeating it gives the same answer and never a second effect. May be the body's requestId instead.",
);
const lastEventIdHeader = header("Last-Event-ID", "The id of the last event seen.");

function queryOf(route: HttpRoute): readonly Members[] {
  if (route.query === undefined) return [];
  const schema = schemaOf(route.query, "input");
  const properties = (schema["properties"] ?? {}) as Record<string, Members>;
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: "query",
    required: false,
    schema: property,
    ...(property["type"] === "array" ? { style: "form", explode: true } : {}),
  }));
}

function parametersOf(route: HttpRoute, mode: Mode): readonly Members[] {
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  if (route.kind === "system") return inPath;
  return [
    ...inPath,
    ...queryOf(route),
    ...(mode === "open" ? [subjectHeader] : []),
    minRevisionHeader,
    ...(route.kind === "write" ? [requestIdHeader] : []),
    ...(route.kind === "stream" ? [lastEventIdHeader] : []),
  ];
}

const answerOf = ({ description, contentType = "application/json", schema }: DocumentedAnswer): Members => ({
  description,
  content: { [contentType]: schema === undefined ? {} : { schema: schemaOf(schema, "output") } },
});

/** What the route asks of the grant, for readers of the document. */
function securityOf({ access }: HttpRoute, mode: Mode): Members {
  if (mode === "open") return {};
  return access === "public" ? { security: [] } : { security: [{ grant: [access.capability] }] };
}

function operationOf(route: HttpRoute, mode: Mode): Members {
  return {
    operationId: route.operationId,
    summary: route.summary,
    parameters: parametersOf(route, mode),
    ...securityOf(route, mode),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: ["admit", "admitMany", "decide", "revoke"].includes(route.operationId),
            content: { "application/json": { schema: schemaOf(route.body, "input") } },
          },
        }),
    responses: {
      ...Object.fromEntries(Object.entries(route.answers).map(([status, answer]) => [status, answerOf(answer)])),
      default: { $ref: "#/components/responses/Problem" },
    },
  };
}

const descriptions = {
  open: "This node runs in open mode: requests name their subject themselves.",
  secure: "Every request but the public ones carries a grant; subject, tenant and application are the grant's.",
} as const;

/** The codes of the registry with what each means, for readers of the document. */
const codesText = (): string =>
  Object.entries(errorRegistry)
    .map(([code, traits]) => `- \`${code}\` (${traits.httpStatus}): ${traits.doc}`)
    .join("\n");

/** The OpenAPI 3.1 document of a route table, as JSON. */
export function renderOpenApi(routes: readonly HttpRoute[], mode: Mode): string {
  const paths: Record<string, Members> = {};
  for (const route of routes) {
    const operations = (paths[route.path] ??= {});
    operations[route.method.toLowerCase()] = operationOf(route, mode);
  }
  return JSON.stringify({
    openapi: "3.1.0",
    info: {
      title: "Mandate",
      version: `${PROTOCOL_VERSION}`,
      description: `A durable workload authority. ${descriptions[mode]}`,
    },
    paths,
    components: {
      ...(mode === "open"
        ? {}
        : {
            securitySchemes: {
              grant: {
                type: "http",
                scheme: "bearer",
                bearerFormat: "mandate-grant+jwt",
                description: "A grant; the scopes are the capabilities that it must have.",
              },
            },
          }),
      responses: {
        Problem: {
          description: `A refusal (RFC 9457). Its code is one of:\n${codesText()}`,
          content: { [PROBLEM_MEDIA_TYPE]: { schema: schemaOf(problem, "output") } },
        },
      },
    },
  });
}
