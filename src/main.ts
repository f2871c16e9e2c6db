#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { parseFlags, UsageError, wholeFlag, type FlagSpec, type ParsedFlags } from "./cli/arguments.ts";
import { renderChecks } from "./cli/doctor-report.ts";
import { usageOf } from "./cli/usage.ts";
import {
  demoWorkerOptions,
  execWorkerOptions,
  splitProgram,
  withServers,
  workerFlags,
} from "./cli/worker-arguments.ts";
import {
  ConfigError,
  natsClientFlags,
  readConfig,
  readNatsClient,
  readStoreLayout,
  settingRows,
  type Config,
} from "./config.ts";
import { settings } from "./settings.ts";

/** Exit codes: 0 it went well, 1 it did not, 2 the command line or the configuration makes no sense. */
const BAD_USAGE = 2;
/** How long a process whose command has ended may go on, ms. */
const LEAVE_MS = 1_000;

const settingFlags: readonly FlagSpec[] = Object.values(settings).map(({ flag }) => ({ name: flag, takesValue: true }));
const help: FlagSpec = { name: "help", takesValue: false };
const valued = (...names: readonly string[]): readonly FlagSpec[] => names.map((name) => ({ name, takesValue: true }));

/** The flags of each command. */
const flagsOf: { readonly [command: string]: readonly FlagSpec[] } = {
  serve: [...settingFlags, help],
  doctor: [...settingFlags, { name: "json", takesValue: false }, help],
  up: [...valued("port", "data", "nodes"), { name: "no-demo", takesValue: false }, help],
  worker: [...valued(...workerFlags), ...valued(...natsClientFlags), help],
  "nats-permissions": [
    ...valued("tenant", "application", "name", "epoch", "shards"),
    { name: "authority", takesValue: false },
    help,
  ],
};

function version(): string {
  for (const place of ["../package.json", "../../package.json"]) {
    try {
      const text = readFileSync(new URL(place, import.meta.url), "utf8");
      return String((JSON.parse(text) as { readonly version: unknown }).version);
    } catch {
      // From source it is one folder up, from dist two.
    }
  }
  return "0.0.0";
}

// Each command loads what it needs when it is called for, so that --help and a demo worker start quickly.

async function runServe(config: Config): Promise<number> {
  const { serve } = await import("./node/serve.ts");
  return serve(config, version());
}

async function runDoctor(config: Config, flags: ParsedFlags): Promise<number> {
  const { examine, standingFailures } = await import("./doctor/doctor.ts");
  const { doctorOptionsOf } = await import("./node/open-store.ts");
  const checks = await examine(doctorOptionsOf(config));
  const healthy = standingFailures(checks, config.allow).length === 0;
  process.stdout.write(
    flags.present.has("json") ? `${JSON.stringify({ healthy, checks }, null, 2)}\n` : renderChecks(checks),
  );
  return healthy ? 0 : 1;
}

async function runUp(flags: ParsedFlags): Promise<number> {
  const options = {
    port: wholeFlag(flags, "port", { initial: 7_700, min: 1, max: 65_535 }),
    directory: flags.values["data"] ?? ".mandate",
    nodes: wholeFlag(flags, "nodes", { initial: 3, min: 1, max: 9 }),
    demo: !flags.present.has("no-demo"),
  };
  const { up } = await import("./local/up.ts");
  return up(options);
}

async function runWorker(given: ParsedFlags, program: readonly string[] | undefined): Promise<number> {
  const flags = withServers(given, process.env);
  const { workerLoginOf } = await import("./node/nats-login.ts");
  const login = workerLoginOf(readNatsClient(process.env, flags.values));
  const { readWorkerToken } = await import("./cli/worker-token.ts");
  const grant = readWorkerToken(flags.values, process.env);
  if (program === undefined) {
    const { runDemoWorker } = await import("./local/demo-worker.ts");
    return runDemoWorker({ ...demoWorkerOptions(flags), login, grant });
  }
  const { runExecWorker } = await import("./cli/exec-worker.ts");
  const write = (line: string): void => void process.stderr.write(line);
  return runExecWorker({ ...execWorkerOptions(flags, program), login, grant }, write);
}

async function runNatsPermissions({ present, values }: ParsedFlags): Promise<number> {
  const { tenant, application, name } = values;
  const { authorityPermissions, workerPermissions } = await import("./secure/permissions.ts");
  const asked = present.has("authority")
    ? authorityPermissions(readStoreLayout(process.env, values))
    : tenant === undefined || application === undefined || [tenant, application, name].includes("")
      ? undefined
      : workerPermissions({ tenantId: tenant, applicationId: application, name });
  if (asked === undefined) throw new UsageError("nats-permissions needs --tenant and --application, or --authority");
  process.stdout.write(`${JSON.stringify(asked, null, 2)}\n`);
  return 0;
}

/** `mandate keys …` and `mandate grant …`, which have verbs, and flags of their own. */
async function runGrants(command: "keys" | "grant", [verb, ...args]: readonly string[]): Promise<number> {
  if (verb === undefined || [verb, ...args].includes("--help")) {
    process.stdout.write(usageOf(command, settingRows()) ?? "");
    return verb === undefined ? BAD_USAGE : 0;
  }
  const { text } = await import("node:stream/consumers");
  const terminal = {
    args,
    environment: process.env,
    readInput: () => text(process.stdin),
    write: (shown: string) => void process.stdout.write(shown),
    complain: (shown: string) => void process.stderr.write(shown),
    now: () => Date.now(),
  };
  return command === "keys"
    ? (await import("./cli/key-commands.ts")).runKeys(verb, terminal)
    : (await import("./cli/grant-commands.ts")).runGrant(verb, terminal);
}

async function main(args: readonly string[]): Promise<number> {
  const [command, ...rest] = args;
  if (command === "--version" || command === "-v") {
    process.stdout.write(`${version()}\n`);
    return 0;
  }
  if (command === undefined || command === "--help" || command === "-h" || command === "help") {
    process.stdout.write(usageOf(undefined, settingRows()) ?? "");
    return command === undefined ? BAD_USAGE : 0;
  }
  if (command === "keys" || command === "grant") return runGrants(command, rest);
  const specs = Object.hasOwn(flagsOf, command) ? flagsOf[command] : undefined;
  if (specs === undefined) throw new UsageError(`there is no command ${JSON.stringify(command)}`);
  const { given, program } = command === "worker" ? splitProgram(rest) : { given: rest, program: undefined };
  const flags = parseFlags(given, specs);
  if (flags.present.has("help")) {
    process.stdout.write(usageOf(command, settingRows()) ?? "");
    return 0;
  }
  if (command === "up") return runUp(flags);
  if (command === "worker") return runWorker(flags, program);
  if (command === "nats-permissions") return runNatsPermissions(flags);
  const config = readConfig(process.env, flags.values);
  return command === "serve" ? runServe(config) : runDoctor(config, flags);
}

try {
  process.exitCode = await main(process.argv.slice(2));
  // A connection that is being made to something that never answers must not hold the process back.
  setTimeout(() => process.exit(), LEAVE_MS).unref();
} catch (thrown) {
  if (!(thrown instanceof UsageError) && !(thrown instanceof ConfigError)) throw thrown;
  process.stderr.write(
    `${thrown.message}\n\nmandate --help tells the commands, mandate <command> --help their flags.\n`,
  );
  process.exitCode = BAD_USAGE;
}
