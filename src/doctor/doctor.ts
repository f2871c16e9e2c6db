import type { NodeConnectionOptions } from "@nats-io/transport-node";
import type { Check } from "./check.ts";
import { checkMonitors, checkServers, type ServerExpectations } from "./server-checks.ts";
import { viewMonitors, viewServers } from "./servers.ts";
import type { StoreAddress } from "./store-address.ts";
import { checkStore } from "./store-checks.ts";

export interface DoctorOptions extends ServerExpectations, StoreAddress {
  readonly servers: readonly string[];
  readonly storage: "file" | "memory";
  readonly monitorUrls: readonly string[];
  readonly connection?: NodeConnectionOptions | undefined;
}

/** Looks at the NATS servers alone, before anything is made on them. */
export async function examineServers(options: DoctorOptions): Promise<readonly Check[]> {
  const [servers, monitors] = await Promise.all([
    viewServers(options.servers, options.connection),
    viewMonitors(options.monitorUrls),
  ]);
  const checks = checkServers(servers);
  return checks.length === 1 ? checks : [...checks, ...checkMonitors(monitors, options)];
}

/** Looks at everything that a deployment's safety rests on (contract 5.6). Nothing is changed. */
export async function examine(options: DoctorOptions): Promise<readonly Check[]> {
  const servers = await examineServers(options);
  if (servers.length === 1) return servers;
  return [...servers, ...(await checkStore(options))];
}

/** The failures that nobody allowed by name. */
export const standingFailures = (checks: readonly Check[], allowed: readonly string[]): readonly Check[] =>
  checks.filter(({ name, verdict }) => verdict === "failure" && !allowed.includes(name));
