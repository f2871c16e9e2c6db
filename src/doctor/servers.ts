import { connect } from "@nats-io/transport-node";
import type { NodeConnectionOptions } from "@nats-io/transport-node";
import { monotonicMs, systemClock } from "../base/clock.ts";

/** What one NATS server says to a client that connects. */
export interface ServerView {
  readonly address: string;
  readonly name: string;
  readonly version: string;
  readonly jetstream: boolean;
  readonly maxPayloadBytes: number;
}

/** What one NATS server's monitoring says (`/varz`). */
export interface MonitorView {
  readonly url: string;
  readonly name: string;
  readonly syncAlways: boolean | undefined;
  /** How many other servers it knows of, and how many it is connected to; nothing for a single one. */
  readonly cluster: { readonly peers: number; readonly connected: number } | undefined;
  /** The server's clock minus ours, and how far that may be off, ms. */
  readonly clockOffsetMs: number;
  readonly clockUncertaintyMs: number;
  readonly storageBytesMax: number | undefined;
  readonly storageBytesUsed: number | undefined;
}

/** Something that was asked and did not answer. */
export interface Silent {
  readonly address: string;
  readonly problem: string;
}

const TIMEOUT_MS = 2_000;

const problemText = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

/** Asks each server by itself, one short connection each. */
export async function viewServers(
  addresses: readonly string[],
  connection: NodeConnectionOptions | undefined,
): Promise<readonly (ServerView | Silent)[]> {
  return Promise.all(
    addresses.map(async (address) => {
      try {
        const nats = await connect({
          ...connection,
          servers: [address],
          name: "mandate doctor",
          timeout: TIMEOUT_MS,
          reconnect: false,
          ignoreClusterUpdates: true,
        });
        const { info } = nats;
        await nats.close();
        return {
          address,
          name: info?.server_name ?? address,
          version: info?.version ?? "",
          jetstream: info?.jetstream === true,
          maxPayloadBytes: info?.max_payload ?? 0,
        };
      } catch (thrown) {
        return { address, problem: problemText(thrown) };
      }
    }),
  );
}

const member = (value: unknown, ...path: readonly string[]): unknown => {
  let found = value;
  for (const name of path) found = typeof found === "object" && found !== null ? Reflect.get(found, name) : undefined;
  return found;
};
const numberAt = (value: unknown, ...path: readonly string[]): number | undefined => {
  const found = member(value, ...path);
  return typeof found === "number" ? found : undefined;
};

/** Asks each monitoring address. */
export async function viewMonitors(urls: readonly string[]): Promise<readonly (MonitorView | Silent)[]> {
  return Promise.all(
    urls.map(async (url) => {
      try {
        const sentAt = monotonicMs();
        const response = await fetch(`${url.replace(/\/$/, "")}/varz`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
        const tookMs = monotonicMs() - sentAt;
        const here = systemClock.now() - tookMs / 2;
        return viewOf(url, await response.json(), { here, tookMs });
      } catch (thrown) {
        return { address: url, problem: problemText(thrown) };
      }
    }),
  );
}

function viewOf(url: string, varz: unknown, clock: { readonly here: number; readonly tookMs: number }): MonitorView {
  const now = Date.parse(String(member(varz, "now")));
  const known = member(varz, "cluster", "urls");
  const always = member(varz, "jetstream", "config", "sync_always");
  const name = member(varz, "server_name");
  return {
    url,
    name: typeof name === "string" ? name : url,
    syncAlways: member(varz, "jetstream") === undefined ? undefined : always === true,
    cluster: Array.isArray(known) ? { peers: known.length - 1, connected: numberAt(varz, "remotes") ?? 0 } : undefined,
    clockOffsetMs: Number.isFinite(now) ? now - clock.here : 0,
    clockUncertaintyMs: Number.isFinite(now) ? clock.tookMs / 2 : Number.POSITIVE_INFINITY,
    storageBytesMax: numberAt(varz, "jetstream", "config", "max_storage"),
    storageBytesUsed: numberAt(varz, "jetstream", "stats", "storage"),
  };
}

export const isSilent = (view: object): view is Silent => "problem" in view;
