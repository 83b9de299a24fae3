import { expect, it } from "vitest";
import { EventParser } from "./sse";

const TEXT = 'retry: 2000\nid: 41\n\nid: 42\nevent: proposed\ndata: {"a":1}\n\n: still here\nid: 43\n\n';

it.each([1, 2, 3, 7, 100])("parses complete events from chunks of %i characters", (size) => {
  const cutter = new EventParser();
  const sent = [];
  for (let at = 0; at < TEXT.length; at += size) sent.push(...cutter.push(TEXT.slice(at, at + size)));
  expect(sent).toEqual([{ id: "42", event: "proposed", data: '{"a":1}' }]);
  expect(cutter.lastId).toBe("43");
});
