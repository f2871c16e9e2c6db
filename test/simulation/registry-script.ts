import { approving, operating, requesting, working } from "./actors.ts";
import { judgeRegistry } from "./judge-registry.ts";
import { planPieces } from "./plan.ts";
import { managing, placedPieces, pressing } from "./registry-actors.ts";
import type { Script } from "./simulate.ts";
import type { World } from "./world.ts";

/** Calls that met a bug. */
const judgeBugs = ({ ledger }: World): readonly string[] =>
  ledger.wishes.flatMap(({ name, mark, tries }) =>
    tries.flatMap(({ heard }) =>
      heard.kind === "refused" && /^(bug|INTERNAL_ERROR)/.test(heard.code)
        ? [`${name} ${mark}: it met a bug: ${heard.code}`]
        : [],
    ),
  );

/**
 * Workers of the registry that share few names: many processes ask in one name through all nodes. `onJudged` is told how
 * often a slot was taken.
 */
export const registryScript = (onJudged: (taken: number) => void = () => undefined): Script => ({
  actors: [
    requesting,
    requesting,
    managing,
    pressing,
    pressing,
    pressing,
    pressing,
    pressing,
    working,
    approving,
    operating,
  ],
  plan: (world) => placedPieces(world, planPieces(world.draw)),
  judge: (world) => {
    const { faults, taken } = judgeRegistry(world.committed());
    onJudged(taken);
    return [...faults, ...judgeBugs(world)];
  },
});
