import { TIMER_MAX_MS } from "../base/clock.ts";
import { UsageError, wholeFlag, type ParsedFlags } from "./arguments.ts";

/** What every worker of the command line is told. */
interface WorkerPlace {
  readonly servers: readonly string[];
  readonly tenantId: string;
  readonly applicationId: string;
  readonly name: string;
  readonly concurrency: number;
  readonly leaseMs: number;
}

/** A worker that starts a program for each piece of work. */
export interface ExecOptions extends WorkerPlace {
  readonly command: string;
  readonly args: readonly string[];
  readonly capabilities: readonly string[];
  /** Names of the variables that the program may see. */
  readonly variables: readonly string[];
  readonly maxDurationMs: number;
  readonly maxMemoryBytes: number | undefined;
  readonly maxCpuMillis: number | undefined;
  readonly graceMs: number;
}

const shared = ["nats", "tenant", "application", "name", "concurrency", "lease-ms", "token", "token-file"];
const ofPrograms = ["capabilities", "max-duration-ms", "max-memory-bytes", "max-cpu-ms", "env", "grace-ms"];

/** The flags of `mandate worker` that take a value. */
export const workerFlags: readonly string[] = [...shared, ...ofPrograms];

/** What stands before `--exec` (or `--`), and the program behind it; `undefined` when there is no such mark. */
export function splitProgram(args: readonly string[]): {
  readonly given: readonly string[];
  readonly program: readonly string[] | undefined;
} {
  const mark = args.findIndex((each) => each === "--exec" || each === "--");
  if (mark < 0) return { given: args, program: undefined };
  const program = args.slice(mark + 1);
  return {
    given: args.slice(0, mark),
    program: args[mark] === "--exec" && program[0] === "--" ? program.slice(1) : program,
  };
}

const items = (text: string | undefined): string[] =>
  (text ?? "")
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

/** An address without user name and password, which have flags of their own. */
const SERVER = /^((nats|tls):\/\/)?(\[[\da-fA-F:]+\]|[\w.-]+)(:\d{1,5})?$/;
const VARIABLE = /^[A-Za-z_]\w*$/;

/** The flags as they were given, and in the place of one about NATS that was not, what a node is told by a variable. */
export function withServers(
  flags: ParsedFlags,
  environment: { readonly [variable: string]: string | undefined },
): ParsedFlags {
  const servers = environment["MANDATE_NATS_SERVERS"] ?? "";
  return servers === "" ? flags : { ...flags, values: { nats: servers, ...flags.values } };
}

function placeOf(
  flags: ParsedFlags,
  initial: { readonly name: string; concurrency: number; leaseMs: number },
): WorkerPlace {
  const { values } = flags;
  const servers = items(values["nats"] ?? "127.0.0.1:4222");
  if (servers.length === 0) throw new UsageError("--nats names no server");
  if (!servers.every((server) => SERVER.test(server)))
    throw new UsageError("--nats (or MANDATE_NATS_SERVERS) must be host:port, separated by commas");
  for (const flag of ["tenant", "application", "name"])
    if (values[flag] === "") throw new UsageError(`--${flag} must not be empty`);
  return {
    servers,
    tenantId: values["tenant"] ?? "demo",
    applicationId: values["application"] ?? "shop",
    name: values["name"] ?? initial.name,
    concurrency: wholeFlag(flags, "concurrency", { initial: initial.concurrency, min: 1, max: 1_000 }),
    leaseMs: wholeFlag(flags, "lease-ms", { initial: initial.leaseMs, min: 100, max: 604_800_000 }),
  };
}

/** @throws UsageError naming the flag that makes no sense, or that only a worker with `--exec` takes. */
export function demoWorkerOptions(flags: ParsedFlags): WorkerPlace {
  const misplaced = ofPrograms.find((flag) => flags.values[flag] !== undefined);
  if (misplaced !== undefined) throw new UsageError(`--${misplaced} needs --exec`);
  return placeOf(flags, { name: "demo", concurrency: 4, leaseMs: 5_000 });
}

/** @throws UsageError naming the flag that makes no sense. */
export function execWorkerOptions(flags: ParsedFlags, program: readonly string[]): ExecOptions {
  const [command, ...args] = program;
  if (command === undefined || command === "") throw new UsageError("--exec names no program");
  const { values } = flags;
  const variables = items(values["env"]);
  if (!variables.every((variable) => VARIABLE.test(variable)))
    throw new UsageError("--env takes names of variables, separated by commas, and no values");
  const bound = (name: string, max: number): number | undefined =>
    values[name] === undefined ? undefined : wholeFlag(flags, name, { initial: 1, min: 1, max });
  return {
    ...placeOf(flags, { name: "exec", concurrency: 1, leaseMs: 30_000 }),
    command,
    args,
    capabilities: items(values["capabilities"]),
    variables,
    maxDurationMs: wholeFlag(flags, "max-duration-ms", { initial: 3_600_000, min: 1, max: TIMER_MAX_MS }),
    maxMemoryBytes: bound("max-memory-bytes", Number.MAX_SAFE_INTEGER),
    maxCpuMillis: bound("max-cpu-ms", TIMER_MAX_MS),
    graceMs: wholeFlag(flags, "grace-ms", { initial: 20_000, min: 0, max: TIMER_MAX_MS }),
  };
}
