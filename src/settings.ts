import { z } from "zod";
import { defaultRules } from "./core/workload/rules.ts";
import { checkNames, type CheckName } from "./doctor/check.ts";
import { defaultHttpConfig } from "./http/config.ts";

/**
 * What a node can be told. Each setting has one variable and one flag, one shape that turns its text into a value, and
 * one sentence about it: the README's table and `--help` are made of them. A flag wins over its variable. Texts are
 * parsed once, in main.ts.
 */

const wholeText = (min: number, max: number): z.ZodType<number, string> =>
  z
    .string()
    .regex(/^\d{1,16}$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be a whole number from ${min} to ${max}`);

const choiceText = <const Choice extends string>(choices: readonly Choice[]): z.ZodType<Choice, string> =>
  z
    .string()
    .refine((text): text is Choice => choices.some((choice) => choice === text), `must be ${choices.join(" or ")}`);

const items = (text: string): string[] =>
  text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

const listText = (pattern: RegExp, rule: string): z.ZodType<string[], string> =>
  z
    .string()
    .transform(items)
    .refine((list) => list.every((item) => pattern.test(item)), rule);

const serverList = z
  .string()
  .transform(items)
  .refine(
    (list) =>
      list.length > 0 &&
      list.every((item) => /^(nats:\/\/|tls:\/\/)?(\[[\da-fA-F:]+\]|[\w.-]+)(:\d{1,5})?$/.test(item)),
    "must be host:port, separated by commas",
  )
  .transform((list) => list.map((item) => item.replace(/^(nats|tls):\/\//, "")));

const allowList = z
  .string()
  .transform(items)
  .refine(
    (list): list is CheckName[] => list.every((item) => checkNames.some((name) => name === item)),
    `must be names of checks: ${checkNames.join(", ")}`,
  );

const path = z.string().refine((text) => text !== "" && !text.includes("\0"), "must be a path");
const word = z.string().refine((text) => text !== "", "must not be empty");

/** One setting: how it is named, what it means, what it is when nothing is said. */
export interface Setting<Value> {
  readonly variable: string;
  readonly flag: string;
  readonly shape: z.ZodType<Value, string>;
  /** As text; absent when there is no value unless one is given. */
  readonly initial?: string;
  readonly doc: string;
  /** Its value is never shown. */
  readonly secret?: true;
  /** It names a file, which is to hold this; what is in it is never shown. */
  readonly file?: FileContent;
}

/** What a file that a setting names has to hold. */
export type FileContent = "nkey seed" | "NATS credentials" | "certificate" | "private key";

const setting = <Value>(one: Setting<Value>): Setting<Value> => one;

/** Every setting of `mandate serve` (and of `mandate doctor`, which reads the ones about NATS and the store). */
export const settings = {
  natsServers: setting({
    variable: "MANDATE_NATS_SERVERS",
    flag: "nats",
    shape: serverList,
    initial: "127.0.0.1:4222",
    doc: "NATS servers, `host:port`, separated by commas. Name all of them.",
  }),
  natsUser: setting({
    variable: "MANDATE_NATS_USER",
    flag: "nats-user",
    shape: word,
    doc: "User name for NATS.",
  }),
  natsPassword: setting({
    variable: "MANDATE_NATS_PASSWORD",
    flag: "nats-password",
    shape: word,
    doc: "Password for NATS; needs the user name.",
    secret: true,
  }),
  natsToken: setting({
    variable: "MANDATE_NATS_TOKEN",
    flag: "nats-token",
    shape: word,
    doc: "Token for NATS, in the place of user name and password.",
    secret: true,
  }),
  natsNkeySeedFile: setting({
    variable: "MANDATE_NATS_NKEY_SEED_FILE",
    flag: "nats-nkey",
    shape: path,
    file: "nkey seed",
    doc: "File with the seed of this node's NATS user (`SU…`); read again at every connection.",
  }),
  natsCredsFile: setting({
    variable: "MANDATE_NATS_CREDS_FILE",
    flag: "nats-creds",
    shape: path,
    file: "NATS credentials",
    doc: "File with JWT and seed, as `nsc` writes it, in the place of a seed alone; read again at every connection.",
  }),
  natsTlsCa: setting({
    variable: "MANDATE_NATS_TLS_CA",
    flag: "nats-tls-ca",
    shape: path,
    file: "certificate",
    doc: "File with the certificates (PEM) of who may vouch for the NATS servers. With it nothing is said to a server without TLS.",
  }),
  natsTlsCert: setting({
    variable: "MANDATE_NATS_TLS_CERT",
    flag: "nats-tls-cert",
    shape: path,
    file: "certificate",
    doc: "File with this node's certificate (PEM), where NATS asks clients for one.",
  }),
  natsTlsKey: setting({
    variable: "MANDATE_NATS_TLS_KEY",
    flag: "nats-tls-key",
    shape: path,
    file: "private key",
    doc: "File with the key of that certificate (PEM).",
  }),
  natsInboxPrefix: setting({
    variable: "MANDATE_NATS_INBOX_PREFIX",
    flag: "nats-inbox",
    shape: z
      .string()
      .regex(/^[A-Za-z0-9_=-]+(\.[A-Za-z0-9_=-]+)*$/, "must be a subject without wildcards")
      .refine((text) => text.length <= 1_024, "must be at most 1024 characters"),
    doc: "Beginning of the subjects at which answers of NATS are awaited, where the user's rights name one. Default: `_INBOX`.",
  }),
  monitorUrls: setting({
    variable: "MANDATE_NATS_MONITOR_URLS",
    flag: "nats-monitor",
    shape: listText(/^https?:\/\/[^\s/]+\/?$/, "must be http(s)://host:port, separated by commas"),
    initial: "",
    doc: "Monitoring addresses of the NATS servers. Without them doctor can't see routes, disk synchronisation, clocks and free space.",
  }),
  httpHost: setting({
    variable: "MANDATE_HTTP_HOST",
    flag: "host",
    shape: word,
    initial: "127.0.0.1",
    doc: "Where HTTP listens. In open mode, without keys, nothing but 127.0.0.1 is taken.",
  }),
  keys: setting({
    variable: "MANDATE_KEYS",
    flag: "keys",
    shape: path,
    doc: "File or folder of the keys that grants are verified with: a JWK or a JWKS a file, public parts are enough. Followed without a restart. Without it the node runs in open mode.",
  }),
  httpPort: setting({
    variable: "MANDATE_HTTP_PORT",
    flag: "port",
    shape: wholeText(0, 65_535),
    initial: "7700",
    doc: "HTTP port; 0 takes any free one.",
  }),
  httpTlsCert: setting({
    variable: "MANDATE_HTTP_TLS_CERT",
    flag: "tls-cert",
    shape: path,
    file: "certificate",
    doc: "File with the certificate (PEM, the whole chain) that HTTP answers with; it is then HTTPS. SIGHUP reads both files again.",
  }),
  httpTlsKey: setting({
    variable: "MANDATE_HTTP_TLS_KEY",
    flag: "tls-key",
    shape: path,
    file: "private key",
    doc: "File with the key of that certificate (PEM).",
  }),
  nodeId: setting({
    variable: "MANDATE_NODE_ID",
    flag: "node-id",
    shape: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, "must be 1 to 64 of A-Z a-z 0-9 . _ -"),
    doc: "Names this node; unique among the nodes of a store. Default: the host's name and the HTTP port.",
  }),
  epoch: setting({
    variable: "MANDATE_EPOCH",
    flag: "epoch",
    shape: z.string().regex(/^[A-Za-z0-9-]{1,32}$/, "must be 1 to 32 of A-Z a-z 0-9 -"),
    initial: "main",
    doc: "Names the data. Two deployments on one NATS need two epochs, and two accounts, since workers do not name an epoch; a store that is made anew needs a new one.",
  }),
  shards: setting({
    variable: "MANDATE_SHARDS",
    flag: "shards",
    shape: wholeText(1, 256),
    initial: "1",
    doc: "Number of streams the data is spread over. Fixed when the store is made.",
  }),
  replicas: setting({
    variable: "MANDATE_REPLICAS",
    flag: "replicas",
    shape: choiceText(["1", "3", "5"]).transform(Number),
    initial: "3",
    doc: "Copies of the data: 3 survives the loss of one server, 1 is for tests.",
  }),
  history: setting({
    variable: "MANDATE_HISTORY",
    flag: "history",
    shape: z
      .string()
      .regex(/^(-1|[1-9]\d{0,8})$/, "must be a whole number from 1, or -1 for all")
      .transform(Number),
    doc: "Versions of each record that the store keeps when it is made: -1 keeps all, for runs that look back. Default: the last.",
  }),
  storage: setting({
    variable: "MANDATE_STORAGE",
    flag: "storage",
    shape: choiceText(["file", "memory"]),
    initial: "file",
    doc: "Where NATS keeps the data. `memory` does not survive a restart of all servers.",
  }),
  sync: setting({
    variable: "MANDATE_SYNC",
    flag: "sync",
    shape: choiceText(["always", "any"]),
    initial: "always",
    doc: "What is expected of the NATS servers: `always` means that whatever was acknowledged survives a power failure.",
  }),
  stateDirectory: setting({
    variable: "MANDATE_STATE_DIR",
    flag: "state-dir",
    shape: path,
    doc: "Folder in which the node notes which store it has seen, so that it never makes an empty one in the place of one that was lost.",
  }),
  allow: setting({
    variable: "MANDATE_ALLOW",
    flag: "allow",
    shape: allowList,
    initial: "",
    doc: "Names of checks, separated by commas, whose failure does not keep the node from starting.",
  }),
  logLevel: setting({
    variable: "MANDATE_LOG_LEVEL",
    flag: "log-level",
    shape: choiceText(["debug", "info", "warn", "error", "silent"]),
    initial: "info",
    doc: "`info`: every state of the node; `debug`: also a line for each refusal and each commit.",
  }),
  clockSkewMaxMs: setting({
    variable: "MANDATE_CLOCK_SKEW_MAX_MS",
    flag: "clock-skew-max-ms",
    shape: wholeText(50, 60_000),
    initial: "2000",
    doc: "A node whose clock differs more than this from the store's is not ready.",
  }),
  passIntervalMs: setting({
    variable: "MANDATE_PASS_INTERVAL_MS",
    flag: "pass-interval-ms",
    shape: wholeText(50, 60_000),
    initial: "1000",
    doc: "How often the node looks for expired leases and passed deadlines.",
  }),
  agingMs: setting({
    variable: "MANDATE_AGING_MS",
    flag: "aging-ms",
    shape: wholeText(1_000, 31_536_000_000),
    doc: "How long work waits for each step of priority that it gains, so that none starves; without it priority alone decides.",
  }),
  commitDeadlineMs: setting({
    variable: "MANDATE_COMMIT_DEADLINE_MS",
    flag: "commit-deadline-ms",
    shape: wholeText(500, 60_000),
    initial: "10000",
    doc: "How long the outcome of a write is looked for before it is answered as unknown.",
  }),
  shutdownGraceMs: setting({
    variable: "MANDATE_SHUTDOWN_GRACE_MS",
    flag: "shutdown-grace-ms",
    shape: wholeText(0, 600_000),
    initial: "10000",
    doc: "How long requests under way may take after SIGTERM.",
  }),
  requestsMax: setting({
    variable: "MANDATE_REQUESTS_MAX",
    flag: "requests-max",
    shape: wholeText(1, 100_000),
    initial: String(defaultHttpConfig.inFlightMax),
    doc: "HTTP requests under way at once; more are refused with 429.",
  }),
  waitersMax: setting({
    variable: "MANDATE_WAITERS_MAX",
    flag: "waiters-max",
    shape: wholeText(1, 1_000_000),
    initial: String(defaultHttpConfig.waitersMax),
    doc: "HTTP requests that wait for a result at once.",
  }),
  eventStreamsMax: setting({
    variable: "MANDATE_EVENT_STREAMS_MAX",
    flag: "event-streams-max",
    shape: wholeText(1, 100_000),
    initial: String(defaultHttpConfig.eventStreamsMax),
    doc: "Open event streams.",
  }),
  payloadBytesMax: setting({
    variable: "MANDATE_PAYLOAD_BYTES_MAX",
    flag: "payload-bytes-max",
    shape: wholeText(4096, defaultRules.payloadBytesMax),
    initial: String(defaultRules.payloadBytesMax),
    doc: "Largest input, checkpoint or output, bytes of JSON.",
  }),
  checkpointsMax: setting({
    variable: "MANDATE_CHECKPOINTS_MAX",
    flag: "checkpoints-max",
    shape: wholeText(1, 10_000),
    initial: String(defaultRules.checkpointsMax),
    doc: "Checkpoints that a workload may have over its life.",
  }),
  secretKeys: setting({
    variable: "MANDATE_SECRET_KEYS",
    flag: "secret-keys",
    shape: listText(/^.{1,128}$/, "must be names of at most 128 characters").transform((list) =>
      list.map((item) => item.toLowerCase()),
    ),
    initial: "",
    doc: `Further names of members that are refused as secrets, beside ${defaultRules.secretKeys.join(", ")}.`,
  }),
  secretPrefixes: setting({
    variable: "MANDATE_SECRET_PREFIXES",
    flag: "secret-prefixes",
    shape: listText(/^\S{2,128}$/, "must be beginnings of 2 to 128 characters"),
    initial: "",
    doc: `Further beginnings of texts that are refused as secrets, beside ${defaultRules.secretPrefixes.join(", ")}.`,
  }),
} as const;
