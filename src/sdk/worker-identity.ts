import { sha256Hex } from "../base/hash.ts";

/**
 * The id of a worker (contract 2.1). Processes that share a name share the id: what tells their claims apart is the
 * claim id and the fencing token, which every call names.
 */
export const workerIdOf = (worker: {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly name: string;
}): string => `worker_${sha256Hex(JSON.stringify([worker.tenantId, worker.applicationId, worker.name])).slice(0, 24)}`;
