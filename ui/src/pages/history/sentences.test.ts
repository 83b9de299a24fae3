import { describe, expect, it } from "vitest";
import { changes, facts } from "./facts";
import { actor, KINDS, sentence, wasErased, type Entry } from "./sentences";
import { visible } from "../../components/visible";

function entry(kind: string, more: Partial<Entry> = {}): Entry {
  const at = "2027-01-15T08:00:00.000Z";
  return { seq: 1, at, kind, actor: "bob", approval_id: "id", data: {}, content: null, digest: "", ...more };
}

describe("sentences", () => {
  it.each(KINDS)("tells %s although nothing else is kept", (kind) => {
    const told = sentence(entry(kind));
    expect(told.length).toBeGreaterThan("bob ".length);
    expect(told).not.toMatch(/undefined|null|NaN|\[object/);
  });

  it("tells who, what and why", () => {
    expect(sentence(entry("proposed", { actor: "agent:bot", data: { tool: "pay", rule: "money" } }))).toBe(
      "The agent bot asked to run pay (rule “money”)",
    );
    expect(
      sentence(entry("decision_refused", { data: { error: "forbidden" }, content: { kind: "approve" } })),
    ).toBe("bob tried to approve it and was refused: not theirs to decide");
    expect(
      sentence(
        entry("erased", {
          data: {
            scope: "person",
            entries: [
              [1, 3],
              [7, 7],
            ],
          },
        }),
      ),
    ).toBe("bob erased the content of 4 entries");
    expect(sentence(entry("delegated", { content: { to: { users: ["eve"], teams: ["ops"] } } }))).toBe(
      "bob passed it on to eve, the team ops",
    );
    expect(sentence(entry("something_new"))).toBe("bob something new");
  });

  it("shows what hides in names", () => {
    expect(actor("agent:b\u202eot")).toBe("The agent b\\u{202e}ot");
    expect(visible("a\u00a0b\\c\u200d d")).toBe("a\\u{a0}b\\\\c\\u{200d} d");
  });

  it("knows what was erased from what never was", () => {
    expect([wasErased(entry("approved", { digest: "abc" })), wasErased(entry("started"))]).toEqual([
      true,
      false,
    ]);
  });
});

describe("facts", () => {
  it("tells the way, the digest and the words", () => {
    const content = {
      via: "web",
      args_sha256: "ab12",
      comment: "fine",
      reason: "",
      acknowledged: ["mixed:/to"],
    };
    expect(facts(entry("approved", { content, data: { quorum: [1, 2] } }))).toEqual([
      { label: "through", text: "web" },
      { label: "saw arguments", text: "ab12", look: "code" },
      { label: "needs", text: "1, then 2 people" },
      { label: "acknowledged", text: "mixed:/to" },
      { label: "comment", text: "fine", look: "quote" },
    ]);
    expect(changes(entry("edited"))).toEqual([]);
  });
});
