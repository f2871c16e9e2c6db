/**
 * Goal: what the judge lets pass of a grant that has ended is what was under way, and nothing else.
 * Method: stories with a revocation, told by hand; each changes one thing and reads what `revoked-means-over` says.
 */
import { describe, expect, it } from "vitest";
import { bearerIn, revoke, under } from "../../chaos/fixtures/granted.ts";
import { Story } from "../../chaos/fixtures/story.ts";
import { judgeLines } from "../../chaos/validate/judge.ts";

const orders = bearerIn("acme", "orders");

async function found(story: Story): Promise<readonly string[]> {
  const verdicts = await judgeLines(JSON.parse(JSON.stringify(story.lines())));
  const verdict = verdicts.find(({ validator }) => validator === "revoked-means-over");
  return (verdict?.violations ?? []).map(({ message }) => message);
}

/** A commit so long after the revocation of a grant, by whoever is named. */
function committedLate(ms: number, by = orders): Story {
  const story = new Story();
  const id = story.admit("a");
  revoke(story, orders);
  story.wait(ms);
  under(story, by, { tell: () => story.cancel(id), silently: true });
  return story;
}

const fault = (story: Story, target: string, lastedMs: number): void => {
  const made = { line: "fault", fault: "pause", target } as const;
  story.others.push(
    { ...made, phase: "begin", at: story.now - lastedMs - 1_000 },
    { ...made, phase: "end", at: story.now - 1_000 },
  );
};

describe("a commit under a grant that has ended", () => {
  it("may come as late as one that was under way", async () => {
    expect(await found(committedLate(12_900))).toEqual([]);
    expect(await found(committedLate(13_100))).toHaveLength(1);
  });

  it("is bound by the deadline that the run had", async () => {
    const story = committedLate(8_100);
    story.parameters["commitDeadlineMs"] = 5_000;
    expect(await found(story)).toHaveLength(1);
  });

  it("may be later by as long as something was held up, but not by a rotation of keys", async () => {
    for (const [target, violations] of [
      ["a1", 0],
      ["keys", 1],
    ] as const) {
      const story = committedLate(16_000);
      fault(story, target, 5_000);
      expect(await found(story)).toHaveLength(violations);
    }
  });

  it("is another's business when the name is another tenant's", async () => {
    expect(await found(committedLate(20_000, { ...bearerIn("bank", "orders"), grantId: "other" }))).toEqual([]);
  });
});

describe("a claim of work whose requester's grant has ended", () => {
  const claimed = (changes: object): Story => {
    const story = new Story();
    const id = story.admit("a");
    const record = { ...story.record(id), ...changes };
    story.records.set(id, record);
    const [entry] = story.entries.splice(0);
    if (entry !== undefined) story.entries.push({ ...entry, record });
    const { subject, grantId } = record.authorization;
    revoke(story, { ...orders, grantId, subject: `${subject.kind}:${subject.id}` });
    story.wait(20_000).claim(id, "w1");
    return story;
  };

  it("is wrong, unless the work keeps what was admitted", async () => {
    expect(await found(claimed({}))).toHaveLength(1);
    expect(await found(claimed({ reauthorize: "never" }))).toEqual([]);
  });
});

describe("a call under a grant that has ended", () => {
  const asked = (ms: number): Story => {
    const story = new Story();
    revoke(story, orders);
    story.wait(ms);
    under(story, orders, { tell: () => void story.acknowledge("list", {}, { workloads: [] }) });
    return story;
  };

  it("may be answered by a node whose view is as old as may be", async () => {
    expect(await found(asked(2_900))).toEqual([]);
    expect(await found(asked(3_100))).toHaveLength(1);
  });
});
