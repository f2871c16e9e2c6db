// Goal: an event stream means the same however it is cut into pieces. Method: one text, every way to cut it in two, and
// character by character.

import { expect, test } from "vitest";
import { EventParser, type ServerEvent } from "../../src/sdk/event-stream.ts";

const TEXT =
  ': welcome\nid: 5\n\nid: 7\nevent: workload.ready\ndata: {"a":\ndata:1}\n\nevent: nothing\n\r\ndata\n\ndata: last\r\n\r\n: keep\nid: 9\n\n';
const EVENTS: readonly ServerEvent[] = [
  { id: "7", event: "workload.ready", data: '{"a":\n1}' },
  { id: "7", event: "message", data: "" },
  { id: "7", event: "message", data: "last" },
];

test("events are told in order, whatever the pieces", () => {
  for (let cut = 0; cut <= TEXT.length; cut++) {
    const parser = new EventParser();
    expect([...parser.push(TEXT.slice(0, cut)), ...parser.push(TEXT.slice(cut))]).toEqual(EVENTS);
    expect(parser.lastId).toBe("9");
  }
  const parser = new EventParser();
  expect(TEXT.split("").flatMap((character) => parser.push(character))).toEqual(EVENTS);
});

test("an event that is not finished is not told", () => {
  expect(new EventParser().push("data: half\n")).toEqual([]);
});
