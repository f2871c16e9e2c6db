import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { nkeys } from "@nats-io/nats-core";
import { renderAccounts, type NatsAccount, type NatsTls } from "../../cluster/nats-config.ts";
import { encodeToken } from "../base/token.ts";
import type { WorkerScope } from "../wire/nats-rights.ts";
import { natsAccounts, type StoreLayout } from "./accounts.ts";
import {
  issueCertificate,
  makeCertificateAuthority,
  type Certificate,
  type CertificateRequest,
} from "./certificates.ts";

/** What the secure profile is made for. */
export interface ProfileOptions extends StoreLayout {
  /** Made when missing. What is in it is kept, so that the same call with one more worker adds that worker. */
  readonly directory: string;
  /** Epoch ms; certificates are good from here on. */
  readonly now: number;
  /** The nats-servers, each with the host names and addresses that clients and other servers reach it at. */
  readonly servers: readonly { readonly name: string; readonly hosts: readonly string[] }[];
  /** A key for each node, by name. */
  readonly nodes: readonly string[];
  /** Where the nodes' HTTP is reached. */
  readonly httpHosts: readonly string[];
  readonly workers: readonly WorkerScope[];
}

/** Files of a profile, and the accounts that are also in `nats/accounts.conf`. */
export interface Profile {
  readonly accounts: readonly NatsAccount[];
  /** The certificate that vouches for all others. */
  readonly caFile: string;
  /** By the server's name. */
  readonly tls: ReadonlyMap<string, NatsTls>;
  readonly http: { readonly certFile: string; readonly keyFile: string };
  /** In the order of the nodes, and of the workers. */
  readonly nodeSeedFiles: readonly string[];
  readonly workerSeedFiles: readonly string[];
}

const CA_DAYS = 3_650;
const DAYS = 825;
/**
 * The folder itself is its owner's alone. What is in it may be read by others, so that a container sees what is mounted
 * into it whatever its user's number is; but the key that vouches for everything is mounted nowhere.
 */
const FOLDER_MODE = 0o700;
const INNER_FOLDER_MODE = 0o755;
const FILE_MODE = 0o644;
const SECRET_MODE = 0o600;

/** What is in the file, or what is made and then written to it. */
async function keep(file: string, make: () => string, mode = FILE_MODE): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (thrown) {
    if (!(thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT")) throw thrown;
  }
  const text = make();
  await writeFile(file, text, { mode, flag: "wx" });
  // Past the process's own mask.
  await chmod(file, mode);
  return text;
}

async function folder(path: string, mode: number): Promise<string> {
  await mkdir(path, { recursive: true });
  await chmod(path, mode);
  return path;
}

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const publicKeyOf = (seed: string): string => nkeys.fromSeed(new TextEncoder().encode(seed.trim())).getPublicKey();
const keepSeed = (file: string): Promise<string> => keep(file, () => `${text(nkeys.createUser().getSeed())}\n`);

/** A certificate and its key, which are kept or made together. */
async function keepPair(path: string, make: () => Certificate, keyMode = FILE_MODE): Promise<Certificate> {
  let made: Certificate | undefined;
  const once = (): Certificate => (made ??= make());
  const key = await keep(`${path}.key`, () => once().key, keyMode);
  return { key, certificate: await keep(`${path}.pem`, () => once().certificate) };
}

/** The file of a worker's seed. */
const workerFile = ({ tenantId, applicationId, name }: WorkerScope): string =>
  `${[tenantId, applicationId, ...(name === undefined ? [] : [name])].map(encodeToken).join(".")}.seed`;

/**
 * Makes the keys, the certificates and the accounts of a deployment, each in the folder of whom it is for: `nats/` for the
 * servers, `nodes/`, `workers/`; `grants/` is for the public keys of grants, which others make. `ca.key` is for nobody but this program: whoever has it can be a server.
 *
 * @throws the system's error when the folder can't be written.
 */
export async function makeProfile(options: ProfileOptions): Promise<Profile> {
  const { now, servers } = options;
  const root = await folder(options.directory, FOLDER_MODE);
  const nats = await folder(join(root, "nats"), INNER_FOLDER_MODE);
  const nodes = await folder(join(root, "nodes"), INNER_FOLDER_MODE);
  const workers = await folder(join(root, "workers"), INNER_FOLDER_MODE);
  await folder(join(root, "grants"), INNER_FOLDER_MODE);
  const ca = await keepPair(
    join(root, "ca"),
    () => makeCertificateAuthority({ commonName: "Mandate deployment", from: now, days: CA_DAYS }),
    SECRET_MODE,
  );
  for (const inside of [nats, nodes, workers]) await keep(join(inside, "ca.pem"), () => ca.certificate);
  const pair = (path: string, of: Pick<CertificateRequest, "commonName" | "hosts" | "use">): Promise<Certificate> =>
    keepPair(path, () => issueCertificate(ca, { ...of, from: now, days: DAYS }));
  for (const { name, hosts } of servers) await pair(join(nats, name), { commonName: name, hosts, use: "peer" });
  // A client's certificate lets its bearer in at the route ports of NATS, as a server.
  await pair(join(nodes, "http"), { commonName: "Mandate", hosts: options.httpHosts, use: "server" });
  const nodeSeedFiles = options.nodes.map((name) => join(nodes, `${encodeToken(name)}.seed`));
  const workerSeedFiles = options.workers.map((worker) => join(workers, workerFile(worker)));
  const nodeSeeds = await Promise.all(nodeSeedFiles.map(keepSeed));
  const workerSeeds = await Promise.all(workerSeedFiles.map(keepSeed));
  const accounts = natsAccounts({
    ...{ epoch: options.epoch, shards: options.shards },
    authorities: nodeSeeds.map((seed) => ({ publicKey: publicKeyOf(seed) })),
    workers: options.workers.map((worker, index) => ({ ...worker, publicKey: publicKeyOf(workerSeeds[index] ?? "") })),
  });
  // Public keys and rights, nothing secret; unlike keys it follows what was asked for last.
  await writeFile(join(nats, "accounts.conf"), `${renderAccounts(accounts)}\n`, { mode: FILE_MODE });
  return {
    accounts,
    caFile: join(root, "ca.pem"),
    tls: new Map(
      servers.map(({ name }): [string, NatsTls] => [
        name,
        { certFile: join(nats, `${name}.pem`), keyFile: join(nats, `${name}.key`), caFile: join(nats, "ca.pem") },
      ]),
    ),
    http: { certFile: join(nodes, "http.pem"), keyFile: join(nodes, "http.key") },
    nodeSeedFiles,
    workerSeedFiles,
  };
}
