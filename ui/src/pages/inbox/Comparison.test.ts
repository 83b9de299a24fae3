import { describe, expect, it } from "vitest";
import type { ApprovalSnapshot } from "../../api/approvals";
import { compareArguments } from "./Comparison";

type Spot = [pointer: string, type: string, text: string, length?: number];

function call(id: string, spots: Spot[], preview = ""): ApprovalSnapshot {
  const fields = spots.map(([pointer, type, text, length = text.length]) => {
    const name = pointer.slice(pointer.lastIndexOf("/") + 1);
    return { pointer, name, type, text, length, sha256: "", findings: [] };
  });
  return { id, card: { fields, preview } } as unknown as ApprovalSnapshot;
}

describe("columns", () => {
  it("are what differs; what is equal is said once", () => {
    const found = compareArguments([
      call("a", [
        ["/to", "string", '"ann"'],
        ["/amount", "number", "5"],
      ]),
      call("b", [
        ["/to", "string", '"bob"'],
        ["/amount", "number", "5"],
      ]),
    ]);
    expect(found.different).toEqual([{ pointer: "/to", name: "to" }]);
    expect(found.same.map(({ name, field }) => [name, field.text])).toEqual([["amount", "5"]]);
    expect(found.cells.get("b")?.get("/to")?.field.text).toBe('"bob"');
  });

  it("tell a text from a number, and what is missing from what is there", () => {
    const found = compareArguments([
      call("a", [["/n", "number", "1"]]),
      call("b", [["/n", "string", "1"]]),
      call("c", []),
    ]);
    expect(found.different.map(({ name }) => name)).toEqual(["n"]);
    expect(found.cells.get("c")?.has("/n")).toBe(false);
  });

  it("go into objects and lists, and name the way", () => {
    const card = (city: string): Spot[] => [
      ["/at", "object", "", 1],
      ["/at/city", "string", city],
    ];
    const found = compareArguments([
      call("a", card('"Rome"')),
      call("b", card('"Oslo"')),
      call("c", [["/at", "object", "{}", 0]]),
    ]);
    expect(found.different.map(({ name }) => name)).toEqual(["at › city", "at"]);
  });

  it("have the preview, which is part of what one decides", () => {
    expect(compareArguments([call("a", [], "3 rows"), call("b", [], "900 rows")]).different).toEqual([
      { pointer: "preview", name: "preview" },
    ]);
  });

  it("have the agent's words, under a name that says whose they are", () => {
    const said = (id: string, agent_preview: string) =>
      ({ id, card: { fields: [], agent_preview } }) as unknown as ApprovalSnapshot;
    expect(compareArguments([said("a", "3 rows"), said("b", "900 rows")]).different).toEqual([
      { pointer: "agent_preview", name: "agent's preview (unverified)" },
    ]);
  });

  it("of one call alone are none: all of it is said once", () => {
    expect(compareArguments([call("a", [["/to", "string", '"ann"']])]).different).toEqual([]);
  });
});
