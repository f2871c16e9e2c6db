import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Draw } from "../draw.ts";
import type { Link } from "../network/link.ts";
import { WorkTap } from "../network/nats-tap.ts";
import type { Recorder } from "../recorder.ts";
import type { PlayWeights } from "../traffic/plays.ts";
import type { TrafficControl, TrafficSetting } from "../traffic/setting.ts";
import { Crew } from "./crew.ts";
import { Issuer } from "./issuer.ts";
import { KeyDesk } from "./key-desk.ts";
import { NatsRing } from "./nats-ring.ts";
import { Nodes } from "./nodes.ts";
import { observersOf, type Observer } from "./observers.ts";
import { Program } from "./program.ts";
import type { SystemShape } from "./setting.ts";
import { SmallDisk } from "./small-disk.ts";
import { tenantsOf } from "./tenants.ts";

export interface SystemOptions {
  /** The run's folder. */
  readonly directory: string;
  readonly shape: SystemShape;
  readonly seed: number;
  readonly draw: Draw;
  readonly recorder: Recorder;
  readonly traffic: { readonly weights: PlayWeights; readonly lanes: number; readonly breakMs: number };
  readonly say: (text: string) => void;
}

const RAW_WORKERS = ["r1", "r2", "r3", "r4"] as const;
/** What plays may take to end, and a little more. */
const TRAFFIC_END_MS = 45_000;

/** The parts of a system that came up before another failed. */
interface Begun {
  disk?: SmallDisk | undefined;
  /** In secure mode. */
  keys?: KeyDesk | undefined;
  ring?: NatsRing;
  nodes?: Nodes;
  crew?: Crew;
  traffic?: Program;
}

/**
 * A whole deployment as real processes, every connection of which goes through a link that faults can shape: three
 * nats-servers, authority nodes behind one front, worker processes, and the traffic.
 */
export class System {
  readonly shape: SystemShape;
  readonly ring: NatsRing;
  readonly nodes: Nodes;
  readonly crew: Crew;
  readonly disk: SmallDisk | undefined;
  /** The keys that grants are signed by; none in open mode. */
  readonly keys: KeyDesk | undefined;
  /** Who looks at everything in the end. */
  readonly observers: readonly Observer[];
  /** From the traffic's raw workers to NATS. */
  readonly rawLinks: readonly (readonly Link[])[];
  readonly #options: SystemOptions;
  readonly #traffic: Program;

  private constructor(options: SystemOptions, parts: Required<Begun>, rawLinks: readonly (readonly Link[])[]) {
    this.#options = options;
    this.shape = options.shape;
    this.ring = parts.ring;
    this.nodes = parts.nodes;
    this.crew = parts.crew;
    this.disk = parts.disk;
    this.keys = parts.keys;
    this.observers = observersOf(
      parts.keys && { issuer: new Issuer(parts.keys.folder), tenants: tenantsOf(options.seed) },
    );
    this.rawLinks = rawLinks;
    this.#traffic = parts.traffic;
  }

  /** Brings everything up and lets the traffic begin. Whatever fails, nothing is left running. */
  static async start(options: SystemOptions): Promise<System> {
    const begun: Begun = {};
    try {
      return await bringUp(options, begun, (parts, links) => new System(options, parts, links));
    } catch (thrown) {
      await begun.traffic?.kill("SIGKILL");
      await begun.crew?.stop("SIGKILL");
      await begun.nodes?.stop("SIGKILL");
      await begun.ring?.kill();
      await begun.disk?.remove();
      throw thrown;
    }
  }

  /** Tells the front and the traffic which nodes there are. */
  async announceNodes(ending = false): Promise<void> {
    this.nodes.refreshFront();
    await writeControl(this.#options.directory, this.nodes, ending);
  }

  /** Lets the traffic finish what it has begun. */
  async endTraffic(): Promise<void> {
    await this.announceNodes(true);
    const timer = setTimeout(() => void this.#traffic.kill("SIGKILL"), TRAFFIC_END_MS);
    await this.#traffic.exited;
    clearTimeout(timer);
    await Promise.all(this.rawLinks.flat().map((link) => link.close()));
  }

  /** Everything at once, in whatever state it is. */
  async kill(): Promise<void> {
    await this.#traffic.kill("SIGKILL");
    await this.crew.stop("SIGKILL");
    await this.nodes.stop("SIGKILL");
    await this.ring.kill();
    await Promise.all(this.rawLinks.flat().map((link) => link.close()));
    await this.disk?.remove();
  }
}

const controlFile = (directory: string): string => join(directory, "traffic.json");

async function writeControl(directory: string, nodes: Nodes, ending: boolean): Promise<void> {
  const control: TrafficControl = { nodes: nodes.present.map(({ name, url }) => ({ node: name, url })), ending };
  const staged = `${controlFile(directory)}.new`;
  await writeFile(staged, JSON.stringify(control));
  await rename(staged, controlFile(directory));
}

async function bringUp(
  options: SystemOptions,
  begun: Begun,
  make: (parts: Required<Begun>, rawLinks: readonly (readonly Link[])[]) => System,
): Promise<System> {
  const { directory, shape, draw, recorder, say } = options;
  const parts = join(directory, "parts");
  begun.disk = shape.smallDisk ? await SmallDisk.make(join(directory, "nats", "n3", "data"), say) : undefined;
  say("starting three nats-servers");
  begun.keys = shape.secure === true ? await KeyDesk.open(join(directory, "grants")) : undefined;
  begun.ring = await NatsRing.start({ directory: join(directory, "nats"), draw, recorder });
  const { ring, keys } = begun;
  say(`starting ${shape.nodes} authority nodes`);
  begun.nodes = await Nodes.start({
    directory: join(directory, "nodes"),
    ...{ shape, ring, draw, recorder },
    keys: keys?.published,
  });
  await begun.nodes.waitReady(120_000);
  say("starting workers and traffic");
  const secure = keys && { tenants: tenantsOf(options.seed), folder: keys.folder };
  begun.crew = await Crew.start({ directory: join(directory, "workers"), parts, ring, recorder, secure });
  const rawLinks = await Promise.all(RAW_WORKERS.map((name) => ring.linksFor(name, new WorkTap(recorder, name))));
  await writeControl(directory, begun.nodes, false);
  const setting: TrafficSetting = {
    seed: options.seed,
    ...options.traffic,
    front: begun.nodes.front.url,
    raw: RAW_WORKERS.map((name, index) => ({
      name,
      servers: (rawLinks[index] ?? []).map((link) => `127.0.0.1:${link.port}`),
    })),
    record: join(parts, "traffic.ndjson"),
    clock: recorder.clock.origin,
    control: controlFile(directory),
    ...(secure === undefined ? {} : { secure }),
  };
  begun.traffic = new Program({
    name: "traffic",
    directory: join(directory, "traffic"),
    file: join(import.meta.dirname, "..", "traffic", keys === undefined ? "main.ts" : "grants-main.ts"),
    setting,
  });
  await begun.traffic.start();
  const { nodes, crew, traffic, disk } = begun;
  return make({ disk, keys, ring, nodes, crew, traffic }, rawLinks);
}
