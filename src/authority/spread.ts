import { spreadHash } from "../base/hash.ts";

/** Whose work a workload is first, among nodes that could all take it: the highest hash wins, so that a node that comes or goes moves only its own share. */
export function ownerOf(workloadId: string, nodes: Iterable<string>): string | undefined {
  let owner: string | undefined;
  let highest = -1;
  for (const node of nodes) {
    const weight = spreadHash(`${node}\n${workloadId}`);
    if (weight > highest || (weight === highest && owner !== undefined && node < owner)) {
      owner = node;
      highest = weight;
    }
  }
  return owner;
}
