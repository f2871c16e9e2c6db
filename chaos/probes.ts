import { pause } from "../src/sdk/backoff.ts";
import type { Recorder } from "./recorder.ts";
import type { System } from "./system/system.ts";

const EVERY_MS = 250;
const TIMEOUT_MS = 1_000;

interface Readiness {
  readonly ready: boolean;
  readonly reasons?: readonly string[];
}

async function askNode(url: string): Promise<Readiness> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const body = (await response.json()) as { readonly reasons?: readonly string[] };
    return { ready: response.ok, ...(body.reasons === undefined ? {} : { reasons: body.reasons }) };
  } catch {
    return { ready: false, reasons: ["no answer"] };
  }
}

/** Asks every node and server again and again whether it is ready, and records each change of the answer. */
export class Probes {
  readonly #system: System;
  readonly #recorder: Recorder;
  readonly #ending = new AbortController();
  readonly #lanes: Promise<unknown>;

  constructor(system: System, recorder: Recorder) {
    this.#system = system;
    this.#recorder = recorder;
    this.#lanes = this.#run();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#lanes;
  }

  async #run(): Promise<void> {
    const { nodes, ring } = this.#system;
    await Promise.all([
      ...nodes.all.map(({ name, process, kept }, index) => {
        // One that is there only while the system is scaled up is not away when it is not there.
        const extra = index >= this.#system.shape.nodes;
        return this.#watch(name, async () => (extra && !kept.wanted ? undefined : askNode(process.url)));
      }),
      ...ring.servers.map(({ name, server }) =>
        this.#watch(name, async () => ({ ready: (await server.monitor("/healthz", TIMEOUT_MS)) !== undefined })),
      ),
    ]);
  }

  async #watch(target: string, ask: () => Promise<Readiness | undefined>): Promise<void> {
    const { signal } = this.#ending;
    let last: boolean | undefined;
    while (!signal.aborted) {
      const seen = await ask();
      if (signal.aborted) return;
      if (seen !== undefined && seen.ready !== last) {
        this.#recorder.write({ line: "probe", target, at: this.#recorder.clock.now(), ...seen });
        last = seen.ready;
      }
      await pause(EVERY_MS, signal);
    }
  }
}
