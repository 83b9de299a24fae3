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
  it("leaves out what a rule names, and what has no effect, and says why", () => {
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
      { name: "drop_users", why: "the rule 'nobody drops' names it" },
      { name: "odd", why: "nobody said what it does" },
      { name: "s\u0435nd_letter", why: "its name, s\\u{435}nd_letter, looks like send_letter" },
    ]);
    expect(plan.shown).toEqual({ look: "sha of look" });
  });
});

describe("tools that only agents declare", () => {
  it("are counted as far as the policy believes their agents", () => {
    expect(describeTrust(list(0))).toBe("No tool runs on its agent's word.");
    expect(describeTrust(list(1))).toContain(
      "1 tool runs on its agent's word: nobody else says what it does. Pin it",
    );
    expect(describeTrust(list(20))).toContain("20 tools run on their agents' word");
    expect(describeTrust(list(0, false))).toContain("they ask until somebody pins them");
    expect(describeTrust(list(0, true, ["Some are not listed."]))).toMatch(/word\. Some are not listed\.$/);
  });

  it("say which other tool has a name that looks the same, letter by letter where they differ", () => {
    expect(describeLookalikes(tool("send", { looks_like: ["s\u0435nd", "\u{1d42c}end"] }))).toBe(
      "its name, send, looks like s\\u{435}nd, \\u{1d42c}end",
    );
    expect(describeLookalikes(tool("send"))).toBe("");
  });

  it("say how often they were called and by whom", () => {
    expect(describeCalls(tool("look", { calls: 1 }))).toBe("1 call in 30 days, declared by bot");
    expect(describeCalls(tool("look", { calls: 1200, agents: [] }))).toBe("1,200 calls in 30 days");
  });
});
