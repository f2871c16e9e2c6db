import type { Msg } from "@nats-io/nats-core";

/**
 * Whether a message may be answered: it says where, and that is a place to be answered at. An answer is published with
 * this node's rights, so a request whose reply subject is a key of the bucket, a call of JetStream or a request of somebody
 * else would have the node do what the asker may not. Between accounts the server sees to that; within one, this does.
 */
export const mayBeAnswered = ({ reply }: Pick<Msg, "reply">): boolean =>
  reply !== undefined && reply !== "" && !reply.startsWith("$") && !reply.startsWith("mandate.");
