import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Verdict } from "../history.ts";
import { HistoryError } from "../validate/collect.ts";
import { readHistory } from "../validate/read-history.ts";
import { FigureCollector } from "./figures.ts";
import { renderJunit } from "./junit.ts";
import { renderPage } from "./page.ts";
import { StoryCollector } from "./story.ts";

/**
 * Writes `verdicts.json`, `junit.xml` and `report.html` into the folder of a run. The page needs nothing beside itself.
 *
 * @throws HistoryError when the history is damaged.
 */
export async function writeReport(directory: string, verdicts: readonly Verdict[]): Promise<void> {
  const figures = new FigureCollector();
  const stories = new StoryCollector(verdicts);
  for await (const line of readHistory(directory)) {
    figures.add(line);
    stories.add(line);
  }
  const drawn = figures.figures();
  if (drawn === undefined) throw new HistoryError("the history does not say how the run was made");
  await writeFile(join(directory, "verdicts.json"), `${JSON.stringify(verdicts, undefined, 2)}\n`);
  await writeFile(join(directory, "junit.xml"), renderJunit(drawn.run, verdicts));
  await writeFile(join(directory, "report.html"), renderPage(drawn, verdicts, stories));
}
