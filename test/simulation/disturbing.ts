import { calmFaults, roughFaults } from "../../src/store/simulated/faults.ts";
import type { Slot, World } from "./world.ts";

type Disturbance = (world: World, slot: Slot) => Promise<void>;

/** For a while, then it is over. */
const whileSlept =
  (begin: (world: World, slot: Slot) => void, end: (world: World, slot: Slot) => void): Disturbance =>
  async (world, slot) => {
    begin(world, slot);
    await world.sleep(world.draw.pick([200, 2000, 6000, 15_000]));
    end(world, slot);
  };

const disturbances: readonly Disturbance[] = [
  whileSlept(
    (_world, { node }) => node.pause(),
    (_world, { node }) => node.resume(),
  ),
  whileSlept(
    (_world, { node }) => node.client.cutOff(),
    (_world, { node }) => {
      if (!node.isDead) node.client.reconnect();
    },
  ),
  whileSlept(
    (_world, { node }) => node.client.hold(),
    (_world, { node }) => node.client.release(),
  ),
  whileSlept(
    (_world, { node }) => node.kill(),
    (world, slot) => {
      if (slot.node.isDead) world.revive(slot);
    },
  ),
  whileSlept(
    (world) => world.log.pause(),
    (world) => world.log.resume(),
  ),
  whileSlept(
    (world) => world.log.beginOutage(),
    (world) => world.log.endOutage(),
  ),
  async (world) => world.log.restart(),
  async (_world, { node }) => node.client.resetFollowers("the stream was made anew"),
  async (_world, { node }) => {
    // Takes as long as its followers take to stop; nobody waits for it.
    if (!node.isDead) void node.authority.resync();
  },
  whileSlept(
    (_world, slot) => {
      slot.faults = roughFaults;
      slot.node.client.setFaults(roughFaults);
    },
    (world, slot) => {
      slot.faults = world.phase === "safety" ? world.weather : calmFaults;
      slot.node.client.setFaults(slot.faults);
    },
  ),
  whileSlept(
    (world, { node }) => (node.wallOffsetMs = world.draw.pick([-300_000, 300_000, 3_600_000])),
    (_world, { node }) => (node.wallOffsetMs = 0),
  ),
];

/** Makes things go wrong, one after the other and sometimes several at once. */
export async function disturbing(world: World): Promise<void> {
  const { draw } = world;
  while (world.phase === "safety") {
    await world.sleep(draw.between(100, 6000));
    if (world.phase !== "safety") return;
    const running = draw.pick(disturbances)(world, draw.pick(world.slots));
    if (draw.chance(0.6)) await running;
  }
}

/** Everything is well again, and stays so. */
export function mend(world: World): void {
  world.log.endOutage();
  world.log.resume();
  for (const slot of world.slots) {
    slot.faults = calmFaults;
    if (slot.node.isDead) world.revive(slot);
    const { node } = slot;
    node.wallOffsetMs = 0;
    node.resume();
    node.client.setFaults(calmFaults);
    node.client.reconnect();
    node.client.release();
  }
}
