/**
 * `npm run bench`: what the product costs beside the raw store that writes the same bytes through the same client. It
 * prints a table for each setting and writes everything to bench-results/. A missed goal is told; it fails nothing.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { projectRoot } from "../cluster/project-root.ts";
import { compileAll } from "./compiled.ts";
import { conflicts } from "./conflicts.ts";
import { heartbeats, loneJob } from "./latency.ts";
import { bytesOf } from "./recorded-commits.ts";
import { renderTable, type Row, type Section } from "./report.ts";
import type { Bench, Scenario } from "./scenario.ts";
import { recordLife, startSetting } from "./setting.ts";
import { direct, registry, requestIds, throughput } from "./throughput.ts";
import { viewLoad } from "./view-load.ts";

const scenarios: readonly Scenario[] = [
  throughput,
  registry,
  loneJob,
  conflicts,
  heartbeats,
  requestIds,
  direct,
  viewLoad,
];

const usage = `npm run bench -- [--servers 1|3|both] [--seconds 3] [--rounds 3] [--scale 1] [--only name,…] [--profile folder]
  --seconds  how long each load runs
  --rounds   how often product and raw store are measured in turn; the middle ratio counts
  --scale    share of the full number of records, jobs and pieces of work
  --only     of: ${scenarios.map(({ name }) => name).join(", ")}
  --profile  writes CPU profiles of nodes and generators there (and slows them down)`;

interface Options {
  readonly servers: readonly (1 | 3)[];
  readonly seconds: number;
  readonly rounds: number;
  readonly scale: number;
  readonly only: readonly Scenario[];
  readonly profileTo: string | undefined;
}

/** Reads the command line; says how it is used and ends when it can't. */
function readOptions(): Options {
  const fail = (problem: string): never => {
    console.error(`${problem}\n${usage}`);
    process.exit(2);
  };
  const { values } = parseArgs({
    options: {
      servers: { type: "string", default: "both" },
      seconds: { type: "string", default: "3" },
      rounds: { type: "string", default: "3" },
      scale: { type: "string", default: "1" },
      only: { type: "string" },
      profile: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  const positive = (name: "seconds" | "rounds" | "scale"): number => {
    const number = Number(values[name]);
    return number > 0 && Number.isFinite(number) ? number : fail(`--${name} must be a positive number`);
  };
  const servers = { "1": [1], "3": [3], both: [3, 1] } as const;
  const chosen = Object.hasOwn(servers, values.servers)
    ? servers[values.servers as keyof typeof servers]
    : fail("--servers must be 1, 3 or both");
  const only = values.only
    ?.split(",")
    .map((name) => scenarios.find((each) => each.name === name) ?? fail(`there is no scenario ${name}`));
  return {
    servers: chosen,
    seconds: positive("seconds"),
    rounds: Math.ceil(positive("rounds")),
    scale: positive("scale"),
    only: only ?? scenarios,
    profileTo: values.profile,
  };
}

const failuresIn = (value: unknown): readonly string[] => {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]): readonly string[] =>
    name === "failures"
      ? Object.entries(member as object).map(([what, times]) => `${what}: ${times}`)
      : failuresIn(member),
  );
};

async function measure(servers: 1 | 3, options: Options): Promise<object> {
  const setting = await startSetting(servers);
  const sections: Section[] = [];
  const rows: Row[] = [];
  const loadBefore = loadavg();
  try {
    const life = await recordLife(setting.address);
    for (const scenario of options.only) {
      const bench: Bench = {
        address: setting.address,
        serverPids: setting.serverPids,
        life,
        ...options,
        say: (line) => process.stderr.write(`${setting.title}: ${scenario.name}: ${line}\n`),
      };
      const section = await scenario.run(bench);
      sections.push(section);
      rows.push(...section.rows);
    }
    const bytes = Object.fromEntries(Object.entries(life).map(([name, commit]) => [name, bytesOf(commit)]));
    console.log(`\n${renderTable(`Mandate on ${setting.title}`, rows)}`);
    const failures = failuresIn(sections);
    if (failures.length > 0) console.log(`failed operations: ${failures.join("; ")}`);
    console.log(
      `bytes a commit: ${JSON.stringify(bytes)}; load average ${loadBefore[0]} before, ${loadavg()[0]} after`,
    );
    return { setting: setting.title, bytes, loadBefore, loadAfter: loadavg(), sections };
  } finally {
    await setting.close();
  }
}

function revision(): string | undefined {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: projectRoot(), encoding: "utf8" }).trim();
  } catch {
    return undefined;
  }
}

const options = readOptions();
compileAll();
const startedAt = new Date();
const results: object[] = [];
for (const servers of options.servers) results.push(await measure(servers, options));
const folder = join(projectRoot(), "bench-results");
mkdirSync(folder, { recursive: true });
const file = join(folder, `${startedAt.toISOString().replaceAll(":", "-").slice(0, 19)}.json`);
const { seconds, rounds, scale } = options;
writeFileSync(
  file,
  `${JSON.stringify(
    {
      startedAt: startedAt.toISOString(),
      revision: revision(),
      machine: { cpus: cpus().length, model: cpus()[0]?.model, memoryBytes: totalmem(), node: process.version },
      options: { seconds, rounds, scale },
      results,
    },
    undefined,
    2,
  )}\n`,
);
console.log(`\nwritten to ${file}`);
