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

describe("comparison columns", () => {
  it("are the differing arguments; equal ones are listed once", () => {
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

  it("distinguish strings from numbers, and missing from present arguments", () => {
    const found = compareArguments([
      call("a", [["/n", "number", "1"]]),
      call("b", [["/n", "string", "1"]]),
      call("c", []),
    ]);
    expect(found.different.map(({ name }) => name)).toEqual(["n"]);
    expect(found.cells.get("c")?.has("/n")).toBe(false);
  });

  it("include members of objects and lists, named by their path", () => {
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

  it("include the preview", () => {
    expect(compareArguments([call("a", [], "3 rows"), call("b", [], "900 rows")]).different).toEqual([
      { pointer: "preview", name: "preview" },
    ]);
  });

  it("include the agent's statements, named as such", () => {
    const said = (id: string, agent_preview: string) =>
      ({ id, card: { fields: [], agent_preview } }) as unknown as ApprovalSnapshot;
    expect(compareArguments([said("a", "3 rows"), said("b", "900 rows")]).different).toEqual([
      { pointer: "agent_preview", name: "agent's preview (unverified)" },
    ]);
  });

  it("are empty for a single call", () => {
    expect(compareArguments([call("a", [["/to", "string", '"ann"']])]).different).toEqual([]);
  });
});
