/** Why a node does not start, for the person who started it. Trying again does not help until somebody acted. */
export class NodeRefusal extends Error {
  override readonly name = "NodeRefusal";
}
