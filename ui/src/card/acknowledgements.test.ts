import { expect, it } from "vitest";
import { stillAcknowledged } from "./acknowledgements";

it("keeps acknowledgements of arguments that an edit left unchanged", () => {
  const ids = ["bidi:/note", "invisible:/a~1b/0", "space:/gone", "lookalike:/big"];
  const before = { note: "x", "a/b": ["y"], gone: 1, big: 9007199254740993n };
  expect(stillAcknowledged(ids, before, { ...before, more: 1 })).toEqual(ids);
  expect(stillAcknowledged(ids, before, { note: "z", "a/b": ["y", "w"], big: 9007199254740992n })).toEqual([
    "invisible:/a~1b/0",
  ]);
});
