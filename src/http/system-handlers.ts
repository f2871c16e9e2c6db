import { answerJson, headersOfStatus, type HttpAnswer } from "./answer.ts";
import type { Exchange } from "./route.ts";

/** The process answers; nothing else is said. */
export const answerLiveness = ({ services }: Exchange): HttpAnswer =>
  answerJson({ nodeId: services.authority.nodeId, mode: services.mode });

/** Whether this node may serve, and what keeps it from it (contract 6.2). */
export function answerReadiness({ services }: Exchange): HttpAnswer {
  const readiness = services.authority.readiness();
  const status = readiness.ready ? 200 : 503;
  return answerJson({ nodeId: services.authority.nodeId, ...readiness }, { status, headers: headersOfStatus(status) });
}

/** The keys that grants are verified with, for whoever wants to verify them too (RFC 7517). */
export const answerJwks = ({ services }: Exchange): HttpAnswer => ({
  status: 200,
  body: services.jwks(),
  contentType: "application/jwk-set+json",
  headers: { "cache-control": "max-age=60" },
});

/** All measures of the node, for Prometheus. */
export const answerMetrics = async ({ services }: Exchange): Promise<HttpAnswer> => ({
  status: 200,
  body: await services.registry.metrics(),
  contentType: services.registry.contentType,
});
