/**
 * Goal: each validator finds the violations that it is there for, nobody else is misled by them, and a healthy history is
 * let pass: a judge that has never found anything proves nothing.
 * Method: saved histories with one thing wrong each (`chaos/fixtures/saved`, two of each validator), judged whole.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tellHealthy } from "../../chaos/fixtures/healthy.ts";
import { Story, STORY_LEASE_MS } from "../../chaos/fixtures/story.ts";
import { violations } from "../../chaos/fixtures/violations.ts";
import type { HistoryLine, Verdict } from "../../chaos/history.ts";
import { seededRandom } from "../../src/base/random.ts";
import { judge, judgeLines, validators } from "../../chaos/validate/judge.ts";
import { readHistory } from "../../chaos/validate/read-history.ts";

const root = join(import.meta.dirname, "..", "..");
const saved = join(root, "chaos", "fixtures", "saved");

const foundBy = (verdicts: readonly Verdict[]): readonly string[] =>
  verdicts.filter(({ violations }) => violations.length > 0).map(({ validator }) => validator);

async function linesIn(directory: string): Promise<readonly HistoryLine[]> {
  const lines: HistoryLine[] = [];
  for await (const line of readHistory(directory)) lines.push(line);
  return lines;
}

describe("the saved histories", () => {
  it("has two violations of each validator", () => {
    const counts = validators.map(({ validator }) => violations.filter((one) => one.validator === validator).length);
    expect(counts).toEqual(validators.map(() => 2));
  });

  it.each(violations)("of $validator are what $name tells", async ({ validator, name, tell }) => {
    expect(await linesIn(join(saved, validator, name))).toEqual(JSON.parse(JSON.stringify(tell())));
  });

  it.each(violations)("show $validator that $name", async ({ validator, name, alsoFoundBy = [] }) => {
    const verdicts = await judge(join(saved, validator, name));
    expect([...foundBy(verdicts)].sort()).toEqual([validator, ...alsoFoundBy].sort());
    const own = verdicts.find((verdict) => verdict.validator === validator);
    expect(own?.violations, JSON.stringify(own?.violations, undefined, 2)).toHaveLength(1);
  });
});

describe("a healthy history", () => {
  it("has no violations, and every validator has looked at something", async () => {
    const verdicts = await judge(join(saved, "healthy"));
    expect(verdicts.flatMap(({ validator, violations: found }) => found.map((one) => [validator, one]))).toEqual([]);
    expect(verdicts.filter(({ checked }) => checked === 0).map(({ validator }) => validator)).toEqual([]);
    expect(await linesIn(join(saved, "healthy"))).toEqual(JSON.parse(JSON.stringify(tellHealthy())));
  });
});

/** The paths of all values in a JSON value, but those of the grant, which is the requester's to say. */
function pathsIn(value: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return Object.entries(value).flatMap(([name, member]) =>
    name === "authorization" ? [] : pathsIn(member, [...path, name]),
  );
}

/** A value with one of its leaves changed. */
function corrupted(value: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined)
    return typeof value === "number" ? value + 1 : typeof value === "boolean" ? !value : `${String(value)}x`;
  const members = value as { readonly [name: string]: unknown };
  const changed = corrupted(members[name], rest);
  if (Array.isArray(value)) return value.map((item: unknown, index) => (String(index) === name ? changed : item));
  return { ...members, [name]: changed };
}

describe("a single corrupted value of a committed record", () => {
  const healthy = JSON.parse(JSON.stringify(tellHealthy())) as readonly HistoryLine[];
  const places = healthy.flatMap((line, index) =>
    line.line === "entry"
      ? (["record", "worker", "slot"] as const).flatMap((name) =>
          line[name] === undefined ? [] : pathsIn(line[name], [name]).map((path) => ({ index, path })),
        )
      : [],
  );

  it("is found wherever it is", async () => {
    const random = seededRandom(7);
    const missed: string[] = [];
    for (let tries = 0; tries < 120; tries++) {
      const place = places[Math.floor(random() * places.length)];
      if (place === undefined) continue;
      const { index, path } = place;
      const lines = healthy.map((line, at) => (at === index ? (corrupted(line, path) as HistoryLine) : line));
      if (foundBy(await judgeLines(lines)).length === 0) missed.push(`${index} ${path.join(".")}`);
    }
    expect(missed).toEqual([]);
  });
});

describe("a claim that nobody was told of", () => {
  const poll = { tenantId: "acme", applicationId: "invoices", workerId: "w1", max: 1, leaseMs: STORY_LEASE_MS };
  const lines = (hasPoll: boolean): readonly HistoryLine[] => {
    const story = new Story();
    const id = story.admit("a");
    story.refuse("claim", { workloadId: id, workerId: "w1", leaseMs: STORY_LEASE_MS }, "WORKER_SUPERSEDED");
    if (hasPoll) story.call("claimNext", poll, { kind: "unknown", cause: "no answer" });
    story.commit(story.claimed(story.record(id), "w1"));
    return story.lines();
  };

  it("is a poll's that was not answered, although the same worker was refused that very work", async () => {
    expect(foundBy(await judgeLines(lines(true)))).not.toContain("refused-effects");
  });

  it("is the refused call's where nobody else asked", async () => {
    expect(foundBy(await judgeLines(lines(false)))).toContain("refused-effects");
  });
});

describe("the description of the judge", () => {
  it("names every validator with its guarantee", async () => {
    const text = await readFile(join(root, "chaos", "README.md"), "utf8");
    const rows = [...text.matchAll(/^\| `([a-z-]+)` \| ([^|]+) \| [^|]+ \|$/gm)].map(([, name, words]) => [
      name,
      words,
    ]);
    for (const { validator, guarantee } of validators) expect(rows).toContainEqual([validator, guarantee]);
  });
});

describe("a history without facts", () => {
  const bare = tellHealthy().filter(({ line }) => line === "run" || line === "end");

  it("is no pass where facts are expected", async () => {
    const expects = validators.map(({ validator }) => validator);
    const lines = bare.map((line) => (line.line === "run" ? { ...line, parameters: { expects } } : line));
    const silent = (await judgeLines(lines)).filter(({ checked }) => checked === 0);
    expect(foundBy(silent)).toEqual(silent.map(({ validator }) => validator));
    // What was looked through at the end is told by the last line.
    expect(silent).toHaveLength(validators.length - 2);
  });

  it("that was broken off says so", async () => {
    const verdicts = await judgeLines(tellHealthy().filter(({ line }) => line !== "end"));
    expect(foundBy(verdicts)).toContain("complete-history");
  });
});
