import { describe, expect, it } from "vitest";
import type { GrantInfo } from "../data";
import { describeGrant, describeLimits } from "./GrantDetails";

const NOW = Date.parse("2027-01-01T12:00:00Z");
const GRANT: GrantInfo = {
  id: "g",
  tool: "pay",
  agent: "*",
  when: "",
  state: "active",
  reason: "rent week",
  created_by: "ann",
  created_at: "2027-01-01T10:00:00Z",
  expires_at: "2027-01-01T14:00:00Z",
  revoked_at: null,
  uses: 3,
  max_uses: null,
  uses_left: null,
  budget_of: null,
  budget: null,
  spent: null,
  budget_left: null,
  spec_sha256: "d",
};

describe("the description of a grant", () => {
  it("names the agent and the condition", () => {
    expect(describeGrant(GRANT)).toBe("Every agent may call it with any arguments");
    expect(describeGrant({ agent: "office", when: "args.n < 5" })).toBe("office may call it if args.n < 5");
  });

  it("states used and remaining limits and the expiry", () => {
    expect(describeLimits(GRANT, NOW)).toEqual(["3 uses", "ends in 2 h"]);
    const limited = { ...GRANT, max_uses: 10, budget: "500", budget_of: "amount", spent: "120.50" };
    expect(describeLimits(limited, NOW)).toEqual(["3 of 10 uses", "120.50 of 500 of amount", "ends in 2 h"]);
  });

  it.each([
    ["revoked", "2027-01-01T14:00:00Z", "revoked"],
    ["used up", "2027-01-01T14:00:00Z", "used up"],
    ["expired", "2027-01-01T11:00:00Z", "ended 1 h ago"],
  ] as const)("states how a grant that is %s ended", (state, expires_at, said) => {
    expect(describeLimits({ ...GRANT, state, expires_at }, NOW).at(-1)).toBe(said);
  });
});
