import { describe, expect, it } from "vitest";
import {
  describeCalls,
  describeLookalikes,
  describeTrust,
  makePinPlan,
  type ListedTool,
  type ListedTools,
} from "./pins";

const tool = (name: string, more: Partial<ListedTool> = {}): ListedTool =>
  ({
    name,
    standing: "declared",
    effect: "read",
    agents: ["bot"],
    calls: 0,
    declared_sha256: `sha of ${name}`,
    named_by: "",
    looks_like: [],
    ...more,
  }) as ListedTool;

const list = (on_word: number, trust_declared = true, bounds: string[] = []) =>
  ({ on_word, trust_declared, bounds }) as ListedTools;

describe("pinning all tools of an agent", () => {
  it("leaves out tools that a rule names or that have no effect, with the reason", () => {
    const plan = makePinPlan([
      tool("look"),
      tool("drop_users", { named_by: "the rule 'nobody drops' names it" }),
      tool("odd", { effect: "" }),
      tool("s\u0435nd_letter", { looks_like: ["send_letter"] }),
      tool("send", { standing: "pinned" }),
      tool("cms_delete_post", { standing: "registered" }),
    ]);
    expect(plan.pinned.map(({ name }) => name)).toEqual(["look"]);
    expect(plan.leftOut).toEqual([
      { name: "drop_users", reason: "the rule 'nobody drops' names it" },
      { name: "odd", reason: "its effect is not declared" },
      { name: "s\u0435nd_letter", reason: "its name, s\\u{435}nd_letter, looks like send_letter" },
    ]);
    expect(plan.shown).toEqual({ look: "sha of look" });
  });
});

describe("declared tools", () => {
  it("are counted when the policy trusts declared effects", () => {
    expect(describeTrust(list(0))).toBe("No tool is trusted on its declaration alone.");
    expect(describeTrust(list(1))).toContain(
      "1 tool is trusted on its declaration alone: only agents state what it does. Pin it",
    );
    expect(describeTrust(list(20))).toContain("20 tools are trusted on their declaration alone");
    expect(describeTrust(list(0, false))).toContain("declared tools need approval until they are pinned");
    expect(describeTrust(list(0, true, ["Some are not listed."]))).toMatch(/alone\. Some are not listed\.$/);
  });

  it("name the tools with a similar name, with code points where they differ", () => {
    expect(describeLookalikes(tool("send", { looks_like: ["s\u0435nd", "\u{1d42c}end"] }))).toBe(
      "its name, send, looks like s\\u{435}nd, \\u{1d42c}end",
    );
    expect(describeLookalikes(tool("send"))).toBe("");
  });

  it("state how often they were called, and by which agents", () => {
    expect(describeCalls(tool("look", { calls: 1 }))).toBe("1 call in 30 days, declared by bot");
    expect(describeCalls(tool("look", { calls: 1200, agents: [] }))).toBe("1,200 calls in 30 days");
  });
});
