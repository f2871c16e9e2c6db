/** `npm run chaos`: makes a run, judges it, and tells what came of it. Exit code 0 when no rule was broken. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { countUnknowns } from "./landed.ts";
import { regressions } from "./regressions.ts";
import { renderVerdict } from "./report/text.ts";
import { writeReport } from "./report/write-report.ts";
import { makeRun } from "./run.ts";
import { scenarios } from "./scenarios.ts";
import { renderSummary } from "./summary.ts";
import { Collector } from "./validate/collect.ts";
import { judgeFacts } from "./validate/judge.ts";
import { readHistory } from "./validate/read-history.ts";

const usage = `npm run chaos -- [--seed N] [--minutes M] [--scenario NAME] [--out DIRECTORY] [--regressions]

Scenarios:
${Object.entries(scenarios)
  .map(([name, { doc }]) => `  ${name.padEnd(14)}${doc}`)
  .join("\n")}
`;

const BAD_USAGE = 2;
const say = (text: string): void => void process.stdout.write(`${text}\n`);

interface Plan {
  readonly scenario: string;
  readonly seed: number;
  readonly minutes: number;
  readonly out: string;
}

const version = (): string => {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return String((JSON.parse(text) as { readonly version: unknown }).version);
};

/** Answers whether the run broke no rule. */
async function makeAndJudge({ scenario: name, seed, minutes, out }: Plan, signal: AbortSignal): Promise<boolean> {
  const scenario = scenarios[name];
  if (scenario === undefined) throw new RangeError(`there is no scenario ${name}`);
  const directory = resolve(out);
  mkdirSync(directory, { recursive: true });
  say(`chaos: scenario ${name}, seed ${seed}, ${minutes} minutes; ${directory}`);
  const summary = await makeRun({ directory, seed, minutes, name, scenario, version: version(), say, signal });
  const collector = new Collector();
  for await (const line of readHistory(directory)) collector.add(line);
  const facts = collector.facts();
  const unknowns = countUnknowns(facts);
  writeFileSync(join(directory, "summary.json"), `${JSON.stringify({ ...summary, unknowns }, undefined, 2)}\n`);
  say(renderSummary(summary, unknowns));
  const verdicts = judgeFacts(facts);
  await writeReport(directory, verdicts);
  for (const verdict of verdicts) say(renderVerdict(verdict));
  const violations = verdicts.reduce((sum, verdict) => sum + verdict.violations.length, 0);
  say(violations === 0 ? "no violations" : `VIOLATIONS: ${violations} (seed ${seed}, scenario ${name})`);
  return violations === 0;
}

function readPlans(): readonly Plan[] | undefined {
  const { values } = parseArgs({
    options: {
      seed: { type: "string" },
      minutes: { type: "string", default: "5" },
      scenario: { type: "string", default: "mixed" },
      out: { type: "string" },
      regressions: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
  const minutes = Number(values.minutes);
  const sensible = Number.isSafeInteger(seed) && Number.isFinite(minutes) && minutes > 0;
  if (values.help || !sensible || scenarios[values.scenario] === undefined) return undefined;
  const stamp = new Date().toISOString().replaceAll(":", "-").slice(0, 19);
  const place = (name: string): string => values.out ?? join("chaos-reports", `${stamp}-${name}`);
  if (values.regressions)
    return regressions.map(({ scenario, seed: known, minutes: length }) => ({
      scenario,
      seed: known,
      minutes: length,
      out: join(place("regressions"), `${scenario}-${known}`),
    }));
  return [{ scenario: values.scenario, seed, minutes, out: place(`${values.scenario}-${seed}`) }];
}

const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    say("healing and stopping; once more to leave everything as it is");
    stopping.abort();
  });
const plans = readPlans();
if (plans === undefined) {
  process.stderr.write(usage);
  process.exit(BAD_USAGE);
}
let passed = true;
for (const plan of plans) passed = (await makeAndJudge(plan, stopping.signal)) && passed;
process.exit(passed ? 0 : 1);
