/**
 * Goal: the report of a run says what its verdicts say, needs nothing beside itself, and is not led astray by what the
 * history holds.
 * Method: reports of saved histories, written into a folder of their own and read again as text.
 */
import { spawnSync } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tellHealthy } from "../../chaos/fixtures/healthy.ts";
import { writeReport } from "../../chaos/report/write-report.ts";
import { HistoryError } from "../../chaos/validate/collect.ts";
import { judge } from "../../chaos/validate/judge.ts";

const root = join(import.meta.dirname, "..", "..");
const saved = join(root, "chaos", "fixtures", "saved");
let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mandate-report-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function reportOf(name: string): Promise<{ page: string; junit: string; verdicts: string }> {
  const directory = join(folder, name.replace("/", "-"));
  await cp(join(saved, name), directory, { recursive: true });
  await writeReport(directory, await judge(directory));
  const read = (file: string): Promise<string> => readFile(join(directory, file), "utf8");
  return { page: await read("report.html"), junit: await read("junit.xml"), verdicts: await read("verdicts.json") };
}

describe("the report of a healthy run", () => {
  it("says so, in every form", async () => {
    const { page, junit, verdicts } = await reportOf("healthy");
    expect(page.includes('<span class="badge pass">no violations</span>')).toBe(true);
    expect(page.includes('<details class="story"')).toBe(false);
    expect(junit).toContain('failures="0"');
    expect(JSON.parse(verdicts)).toHaveLength((junit.match(/<testcase /g) ?? []).length);
  });

  it("needs nothing beside itself", async () => {
    const { page } = await reportOf("healthy");
    expect(/(?:src|href)="(?!#)|url\(|@import|https?:\/\//.exec(page)?.[0]).toBeUndefined();
  });
});

describe("the report of a broken run", () => {
  it("tells the story of the workload that broke a rule", async () => {
    const { page, junit } = await reportOf("timely-passes/recovered-early");
    const [, workloadId = ""] = /<details class="story" id="(workload_[0-9a-f]{24})" open>/.exec(page) ?? [];
    const says = (text: string): boolean => page.includes(text);
    expect(says(`<a href="#${workloadId}">`)).toBe(true);
    expect(says("4997 ms before its instant")).toBe(true);
    expect(says("RECOVERING by authority.recovery")).toBe(true);
    expect(junit).toContain('failures="1"');
    expect(junit).toContain("<failure message=");
  });

  it("keeps what callers wrote from becoming markup", async () => {
    const directory = join(folder, "hostile");
    await cp(join(saved, "liveness/ready-for-ever"), directory, { recursive: true });
    const lines = await readFile(join(directory, "history.ndjson"), "utf8");
    await writeFile(
      join(directory, "history.ndjson"),
      lines.replaceAll("traffic", "</script><script>alert(1)</script>"),
    );
    await writeReport(directory, await judge(directory));
    const page = await readFile(join(directory, "report.html"), "utf8");
    expect(page.includes("alert(1)")).toBe(true);
    expect(page.includes("alert(1)</script>")).toBe(false);
  });
});

describe("a saved run", () => {
  const check = (...directories: readonly string[]): { readonly status: number | null; readonly stdout: string } =>
    spawnSync(process.execPath, ["--import", "tsx", "chaos/check.ts", ...directories], { cwd: root, encoding: "utf8" });

  it("is judged again from the command line, and tells by the exit code", async () => {
    await reportOf("no-leftovers/process-left");
    expect(check(join(folder, "healthy")).status).toBe(0);
    const { status, stdout } = check(join(folder, "healthy"), join(folder, "no-leftovers-process-left"));
    expect(status).toBe(1);
    expect(stdout).toContain("FAIL no-leftovers");
  });

  it("that is damaged is refused by the line", async () => {
    const directory = join(folder, "damaged");
    await cp(join(saved, "healthy"), directory, { recursive: true });
    const [first] = tellHealthy();
    await writeFile(join(directory, "history.ndjson"), `${JSON.stringify(first)}\n{"line":"ca`);
    await expect(judge(directory)).rejects.toThrow(HistoryError);
  });
});
