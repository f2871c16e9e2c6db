// Runs the tests and closes with one plain line, `tests: N passed, N failed`, taken from vitest's own JSON report, so
// that a reader of the output needs to know nothing about the runner. Further arguments go to vitest as they are.
// A run without a report (a crash, a bad argument) and a run without a test both count as failed.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = await mkdtemp(join(tmpdir(), "mandate-tests-"));
const report = join(folder, "report.json");
const reporter = process.stdout.isTTY ? "default" : "dot";
const runner = join(root, "node_modules", "vitest", "vitest.mjs");
const own = ["run", `--reporter=${reporter}`, "--reporter=json", `--outputFile.json=${report}`];

const child = spawn(process.execPath, [runner, ...own, ...process.argv.slice(2)], {
  cwd: root,
  stdio: ["ignore", "inherit", "inherit"],
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
const code = await new Promise((resolve) => {
  child.once("error", (error) => {
    console.error(`vitest could not be started: ${error.message}`);
    resolve(1);
  });
  child.once("exit", (exitCode, signal) => resolve(exitCode ?? (signal === null ? 1 : 130)));
});

/** What the report counts. A file that fails before its first test (an import, a hook) is one failure more. */
const count = (text) => {
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(text);
  const brokenFiles = testResults.filter(
    ({ status, assertionResults }) => status === "failed" && !assertionResults.some((test) => test.status === "failed"),
  );
  return {
    passed: numPassedTests,
    failed: numFailedTests + brokenFiles.length,
    skipped: numPendingTests + (numTodoTests ?? 0),
  };
};

let counts;
try {
  counts = count(await readFile(report, "utf8"));
} catch {
  console.error("vitest left no report");
  counts = { passed: 0, failed: 1, skipped: 0 };
}
await rm(folder, { recursive: true, force: true });
if (counts.passed + counts.failed === 0) {
  console.error("no test ran");
  counts.failed = 1;
}
// An error outside every test (an unhandled rejection) fails the run without a failed test: it shall be seen here too.
if (code !== 0 && counts.failed === 0) counts.failed = 1;
const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
process.exitCode = code === 0 && counts.failed > 0 ? 1 : code;
const closing = `tests: ${counts.passed} passed, ${counts.failed} failed${skipped}`;
// A script that does more than test asks for the line in a file, to print it when everything is done.
const file = process.env["MANDATE_TESTS_CLOSING"];
if (file === undefined) console.log(closing);
else await writeFile(file, `${closing}\n`);
