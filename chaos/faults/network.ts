import type { Healing, Link, LinkShape } from "../network/link.ts";
import { pause } from "../../src/sdk/backoff.ts";
import type { RingServer } from "../system/nats-ring.ts";
import { streamOf } from "../system/setting.ts";
import type { PlannedFault, Planner, World } from "./fault.ts";
import { Repeating } from "./repeating.ts";

const held: LinkShape = { toServer: { passage: "hold" }, toClient: { passage: "hold" } };

/** How the ends of a cut connection learn of it: not at all (held), or at once (refused and reset). */
type Cut = "held" | "refused";

function cutLinks(links: readonly Link[], how: Cut): void {
  for (const link of links) {
    link.shape(how === "held" ? held : { refuse: true });
    if (how === "refused") link.cut();
  }
}

const healLinks = (links: readonly Link[], healing: Healing): Promise<void> => {
  for (const link of links) link.heal(healing);
  return Promise.resolve();
};

/** A shape of both directions between two servers, whoever of them dialled: `away` is what leaves the first. */
function shapeBetween(
  world: World,
  names: readonly [string, string],
  shape: { away: LinkShape; home: LinkShape },
): void {
  const [first, second] = names;
  const { routes } = world.system.ring;
  routes.get(`${first}>${second}`)?.shape({ ...shape.away, ...shape.home });
  const turned = { toClient: shape.away.toServer ?? {}, toServer: shape.home.toClient ?? {} };
  routes.get(`${second}>${first}`)?.shape(turned);
}

async function drawServer(world: World): Promise<{ server: RingServer; others: readonly RingServer[] }> {
  const { system, draw } = world;
  const leader = await system.ring.someLeader(streamOf(draw.whole(0, system.shape.shards - 1)));
  const server = draw.chance(0.65) ? leader : (draw.pick(system.ring.servers) ?? leader);
  return { server, others: system.ring.servers.filter(({ name }) => name !== server.name) };
}

const routesOf = (world: World, name: string): readonly Link[] =>
  [...world.system.ring.routes.values()].filter((link) => link.name.split(">").includes(name));

/** Links of all clients (nodes, workers, the traffic) to one server. */
function clientLinksTo(world: World, name: string): readonly Link[] {
  const { nodes, crew, rawLinks } = world.system;
  const all = [...nodes.all.map(({ links }) => links), ...crew.workers.map(({ links }) => links), ...rawLinks].flat();
  return all.filter((link) => link.name.endsWith(`>${name}`));
}

const ROUTES = "routes";

/**
 * How a cut server comes back. All at once; connection by connection; or so that clients' requests pass before what the
 * servers tell each other of who leads: for those seconds the former leader answers from its old state beside the new one.
 */
function drawReturn({ draw }: World): { readonly lastMs: number; readonly healing: Healing } {
  if (draw.chance(0.5))
    return {
      lastMs: draw.whole(5_000, 8_000),
      healing: { spreadMs: draw.whole(0, 300), raftLateMs: draw.whole(1_500, 4_000) },
    };
  const lastMs = draw.chance(0.4) ? draw.whole(8_000, 9_500) : draw.whole(500, 8_000);
  return { lastMs, healing: { spreadMs: draw.chance(0.6) ? draw.whole(500, 5_000) : 0 } };
}

/** One server cut off from the others, mostly the leader; its clients stay with it, or are cut off as well. */
export const isolateServer: Planner = async (world) => {
  const { draw } = world;
  const { server } = await drawServer(world);
  const how: Cut = draw.chance(0.8) ? "held" : "refused";
  const withClients = draw.chance(0.2);
  const links = [...routesOf(world, server.name), ...(withClients ? clientLinksTo(world, server.name) : [])];
  const { lastMs, healing } = drawReturn(world);
  return {
    fault: "isolate-server",
    target: server.name,
    locks: [ROUTES, ...(withClients ? ["client-links"] : [])],
    lastMs,
    begin: () => {
      cutLinks(links, how);
      return Promise.resolve({ how, withClients, ...healing });
    },
    end: async () => {
      await healLinks(links, healing);
      // Until every connection is back the network is not whole.
      await pause((healing.spreadMs ?? 0) + (healing.raftLateMs ?? 0));
    },
  };
};

/** One way only: what a server says is lost, what it is told arrives; or the other way about. */
export const cutOneWay: Planner = async (world) => {
  const { draw } = world;
  const { server, others } = await drawServer(world);
  const mute = draw.chance(0.5);
  const links = routesOf(world, server.name);
  return {
    fault: mute ? "one-way-mute" : "one-way-deaf",
    target: server.name,
    locks: [ROUTES],
    lastMs: draw.whole(1_000, 9_000),
    begin: () => {
      const away: LinkShape = mute ? { toServer: { passage: "hold" } } : {};
      const home: LinkShape = mute ? {} : { toClient: { passage: "hold" } };
      for (const other of others) shapeBetween(world, [server.name, other.name], { away, home });
      return Promise.resolve();
    },
    end: () => healLinks(links, { spreadMs: draw.whole(0, 3_000) }),
  };
};

/** Two servers can't talk; both talk to the third. */
export const cutPair: Planner = ({ system, draw }) => {
  const [one, two] = draw.shuffled(system.ring.servers);
  if (one === undefined || two === undefined) return undefined;
  const names = [`${one.name}>${two.name}`, `${two.name}>${one.name}`];
  const links = names.flatMap((name) => system.ring.routes.get(name) ?? []);
  const how: Cut = draw.chance(0.7) ? "held" : "refused";
  return {
    fault: "cut-pair",
    target: `${one.name}-${two.name}`,
    locks: [ROUTES],
    lastMs: draw.whole(1_000, 9_000),
    begin: () => {
      cutLinks(links, how);
      return Promise.resolve({ how });
    },
    end: () => healLinks(links, { spreadMs: draw.whole(0, 3_000) }),
  };
};

export const slowRoutes: Planner = async (world) => {
  const { draw } = world;
  const { server } = await drawServer(world);
  const links = routesOf(world, server.name);
  const late = { delayMs: draw.whole(10, 200), jitterMs: draw.whole(0, 200) };
  return {
    fault: "slow-routes",
    target: server.name,
    locks: [ROUTES],
    lastMs: draw.whole(1_500, 8_000),
    begin: () => {
      for (const link of links) link.shape({ toServer: late, toClient: late });
      return Promise.resolve(late);
    },
    end: () => healLinks(links, {}),
  };
};

/** A client (a node or a worker) and its links to NATS. */
function drawClient({ system, draw }: World): { name: string; links: readonly Link[] } | undefined {
  const nodes = system.nodes.present.map(({ name, links }) => ({ name, links }));
  const workers = system.crew.workers.map(({ name, links }) => ({ name, links }));
  return draw.pick(draw.chance(0.65) ? nodes : workers);
}

function clientFault(
  world: World,
  what: { fault: string; lastMs: number; details: object; make: (links: readonly Link[]) => void; spreadMs?: number },
): PlannedFault | undefined {
  const client = drawClient(world);
  if (client === undefined) return undefined;
  return {
    fault: what.fault,
    target: client.name,
    locks: [`links:${client.name}`, "client-links"],
    lastMs: what.lastMs,
    begin: () => {
      what.make(client.links);
      return Promise.resolve(what.details);
    },
    end: () => healLinks(client.links, { spreadMs: what.spreadMs ?? 0 }),
  };
}

/** A client loses the network: silently, with bytes lost for good, or with a reset. */
export const cutClient: Planner = (world) => {
  const { draw } = world;
  const how = draw.pick(["held", "refused", "lost"] as const);
  return clientFault(world, {
    fault: "cut-client",
    lastMs: draw.whole(300, 7_000),
    details: { how },
    spreadMs: draw.whole(0, 500),
    make: (links) => {
      if (how === "lost") for (const link of links) link.shape({ toClient: { passage: "drop" } });
      else cutLinks(links, how);
    },
  });
};

/** Whole NATS messages are lost, either way: requests, answers, deliveries to followers. */
export const loseMessages: Planner = (world) => {
  const { draw } = world;
  const loss = draw.whole(1, 25) / 100;
  const way = draw.pick(["toClient", "toServer"] as const);
  return clientFault(world, {
    fault: "lose-messages",
    lastMs: draw.whole(1_000, 8_000),
    details: { loss, way },
    make: (links) => {
      for (const link of links) link.shape({ [way]: { loss } });
    },
  });
};

/** Whole NATS messages come twice to a client: a second answer to one request, a delivery it has had. */
export const repeatMessages: Planner = (world) => {
  const { draw } = world;
  const repetition = draw.whole(5, 60) / 100;
  return clientFault(world, {
    fault: "repeat-messages",
    lastMs: draw.whole(1_000, 8_000),
    details: { repetition },
    make: (links) => {
      for (const link of links) link.shape({ toClient: { repetition } });
    },
  });
};

export const slowClient: Planner = (world) => {
  const { draw } = world;
  const late = { delayMs: draw.whole(10, 300), jitterMs: draw.whole(0, 400) };
  return clientFault(world, {
    fault: "slow-client",
    lastMs: draw.whole(1_000, 8_000),
    details: late,
    make: (links) => {
      for (const link of links) link.shape({ toServer: late, toClient: late });
    },
  });
};

/** HTTP answers of a node are lost again and again: requests arrive and are carried out, and nobody is told. */
export const loseHttpAnswers: Planner = ({ system, draw }) => {
  const node = draw.pick(system.nodes.present);
  if (node === undefined) return undefined;
  const { httpLink } = node;
  const loseAgain = async (): Promise<void> => {
    httpLink.shape({ toClient: { passage: "drop" } });
    await pause(draw.whole(50, 400));
    httpLink.heal();
    await pause(draw.whole(50, 600));
  };
  let losing: Repeating | undefined;
  return {
    fault: "lose-http-answers",
    target: node.name,
    locks: [`http:${node.name}`],
    lastMs: draw.whole(1_000, 6_000),
    begin: () => {
      losing = new Repeating(loseAgain);
      return Promise.resolve();
    },
    end: async () => losing?.stop(),
  };
};
