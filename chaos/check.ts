/** `npm run chaos:check -- DIRECTORY…`: judges saved runs again and writes their reports anew. Exit code 0 when no rule was broken. */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { renderVerdict } from "./report/text.ts";
import { writeReport } from "./report/write-report.ts";
import { HistoryError } from "./validate/collect.ts";
import { judge } from "./validate/judge.ts";

const BAD_USAGE = 2;
const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** Answers how many violations a saved run has. */
async function check(directory: string): Promise<number> {
  say(directory);
  const verdicts = await judge(directory);
  await writeReport(directory, verdicts);
  for (const verdict of verdicts) say(renderVerdict(verdict));
  const violations = verdicts.reduce((sum, verdict) => sum + verdict.violations.length, 0);
  say(violations === 0 ? "no violations" : `VIOLATIONS: ${violations}`);
  return violations;
}

async function checkAll(directories: readonly string[]): Promise<number> {
  let violations = 0;
  for (const directory of directories) violations += await check(resolve(directory));
  return violations === 0 ? 0 : 1;
}

const { positionals } = parseArgs({ allowPositionals: true });
if (positionals.length === 0) {
  process.stderr.write("npm run chaos:check -- DIRECTORY…\n");
  process.exitCode = BAD_USAGE;
} else
  try {
    process.exitCode = await checkAll(positionals);
  } catch (thrown) {
    const unreadable = thrown instanceof HistoryError || (thrown instanceof Error && "code" in thrown);
    if (!unreadable) throw thrown;
    process.stderr.write(`${thrown.message}\n`);
    process.exitCode = BAD_USAGE;
  }
