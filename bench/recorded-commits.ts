import type { Commit, Shard, Store } from "../src/store/store.ts";
import { headerLine } from "../src/store/jetstream/headers.ts";
import { prepareCommit, type PreparedMessage } from "../src/store/jetstream/prepared-commit.ts";

/** One message of a commit as it went over the wire, without what differs from write to write. */
export interface RecordedMessage {
  /** The length of its key. */
  readonly keyLength: number;
  readonly data: Uint8Array;
  /** Header lines behind the guard and the message's id. */
  readonly lines: string;
  /** Length of the message's id. */
  readonly idLength: number;
}

/** A commit to be written again, byte for byte but for keys, ids and revisions. */
export type RecordedCommit = readonly RecordedMessage[];

/** A store that notes the commits of work on their way. Heartbeats of nodes are left out. */
export function recordingStore(store: Store, onCommit: (commit: Commit) => void): Store {
  return {
    shards: store.shards.map((shard): Shard => ({
      index: shard.index,
      read: (keys, options) => shard.read(keys, options),
      follow: (options) => shard.follow(options),
      commit: (commit, options) => {
        if (commit.puts.some(({ key }) => key.startsWith("w."))) onCommit(commit);
        return shard.commit(commit, options);
      },
    })),
    reachable: () => store.reachable(),
    close: () => store.close(),
  };
}

/** An assertion rides on a message of its own: to the floor it is one more message of the same size. */
const recordCarrier = ({ subject, data, headerLines }: PreparedMessage): RecordedMessage => ({
  keyLength: subject.length,
  data,
  lines: headerLine("Nats-TTL", "10s") + headerLine("Bench-Filler", "0".repeat(Math.max(0, headerLines.length - 140))),
  idLength: 24,
});

/** Renders a commit as the store does, and keeps what a bare client has to send for the same bytes: the puts in their order first. */
export function recordCommit(commit: Commit): RecordedCommit {
  const prepared = prepareCommit(commit, { prefix: "", carrierKey: "y.bench", messageBytesMax: 8_000_000 });
  if (typeof prepared === "string") throw new RangeError(prepared);
  const carriers = prepared.messages.slice(0, prepared.carriers);
  const written = prepared.messages.slice(prepared.carriers).map(({ subject, data, headerLines }, index) => {
    const put = commit.puts[index];
    const expected = put === undefined || put.base === "absent" ? 0 : put.base.revision;
    const id = `${commit.operationId}.${index}`;
    const front = headerLine("Nats-Expected-Last-Subject-Sequence", expected) + headerLine("Nats-Msg-Id", id);
    if (!headerLines.startsWith(front)) throw new RangeError("a recorded message does not begin with its guard");
    return { keyLength: subject.length, data, lines: headerLines.slice(front.length), idLength: id.length };
  });
  return [...written, ...carriers.map(recordCarrier)];
}

/** How many bytes a commit brings to the server, headers included. */
export const bytesOf = (commit: RecordedCommit): number =>
  commit.reduce((total, { data, lines, idLength }) => total + data.length + lines.length + idLength + 80, 0);
