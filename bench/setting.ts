import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startNatsCluster, type NatsCluster } from "../cluster/nats-cluster.ts";
import { fillAdmission } from "../src/http/members.ts";
import { streamName } from "../src/store/jetstream/bucket.ts";
import type { Commit } from "../src/store/store.ts";
import { recordCommit, recordingStore, type RecordedCommit } from "./recorded-commits.ts";
import type { RecordedLife } from "./raw-load.ts";
import {
  admissionOf,
  claimNextOf,
  completionOf,
  fenceOf,
  firstBeatOf,
  leaseMs,
  registrationOf,
  requester,
  scope,
} from "./sample-work.ts";
import { openAuthority, openStore, type StoreAddress } from "./store-access.ts";

/** Real servers with an empty store on them. */
export interface Setting {
  readonly title: string;
  readonly servers: 1 | 3;
  readonly address: StoreAddress;
  /** The ids of the servers' processes. */
  readonly serverPids: readonly number[];
  close(): Promise<void>;
}

/**
 * Three servers keep three copies in files, every write on disk before it is acknowledged; one server keeps its only
 * copy in memory, since a batch of messages costs it two milliseconds on a file.
 */
export async function startSetting(servers: 1 | 3): Promise<Setting> {
  const directory = await mkdtemp(join(tmpdir(), "mandate-bench-"));
  const cluster = await startNatsCluster({ servers, directory, ...(servers === 3 ? { sync: "always" } : {}) });
  const close = async (): Promise<void> => {
    await cluster.stop();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    return {
      title: servers === 3 ? "three servers, file, sync always" : "one server, memory",
      servers,
      address: await makeStore(cluster, servers),
      serverPids: cluster.servers.map(({ pid }) => pid ?? 0),
      close,
    };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

async function makeStore(cluster: NatsCluster, servers: 1 | 3): Promise<StoreAddress> {
  const epoch = "bench";
  const everywhere: StoreAddress = {
    servers: cluster.urls,
    epoch,
    replicas: servers,
    storage: servers === 3 ? "file" : "memory",
  };
  await (await openStore(everywhere, "bench-maker", true)).close();
  const leader = await cluster.waitLeader(streamName(epoch, 0));
  return { ...everywhere, servers: [leader.url.replace("nats://", "")] };
}

/** Lets one piece of work live and keeps the commits that it took. */
export async function recordLife(address: StoreAddress): Promise<RecordedLife> {
  const store = await openStore(address, "bench-recorder");
  const commits: RecordedCommit[] = [];
  const recorder = recordingStore(store, (commit: Commit) => commits.push(recordCommit(commit)));
  const authority = await openAuthority(recorder, "bench-recorder");
  const last = (): RecordedCommit => {
    const commit = commits.pop();
    if (commit === undefined) throw new RangeError("nothing was committed");
    return commit;
  };
  const admit = async (name: string): Promise<RecordedCommit> => {
    await authority.admit(fillAdmission(admissionOf(`recorded-${name}`), { subject: requester }, undefined));
    return last();
  };
  const claim = async (
    requestId?: string,
  ): Promise<{ commit: RecordedCommit; held: Parameters<typeof fenceOf>[0] }> => {
    const request = claimNextOf("worker-recorded-1", requestId === undefined ? {} : { requestId });
    const [held] = await authority.claimNext({ ...request, ...scope });
    if (held === undefined) throw new RangeError("nothing was claimed");
    return { commit: last(), held };
  };
  try {
    const admitted = await admit("one");
    const claimed = await claim();
    await authority.heartbeat({ ...fenceOf(claimed.held), extendMs: leaseMs });
    const heartbeat = last();
    await authority.complete(completionOf(claimed.held));
    const complete = last();
    await admit("two");
    const requested = await claim("recorded-1");
    await authority.complete(completionOf(requested.held));
    await admit("three");
    const { worker } = await authority.registerWorker({ ...scope, ...registrationOf("recorded-worker-1") });
    await authority.heartbeatWorker({ ...scope, ...firstBeatOf(worker) });
    const [placed] = await authority.claimNext({ ...claimNextOf(worker.workerId), ...scope });
    if (placed === undefined) throw new RangeError("a worker of the registry was given nothing");
    const claimRegistered = last();
    await authority.complete(completionOf(placed));
    return {
      admit: admitted,
      claim: claimed.commit,
      claimRequested: requested.commit,
      heartbeat,
      complete,
      claimRegistered,
      completeRegistered: last(),
    };
  } finally {
    await authority.close();
    await store.close();
  }
}
