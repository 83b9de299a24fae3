import { describe, expect, it } from "vitest";
import { describeBacklog, describeDelivery, describePurpose } from "./ChannelRow";

const channel = {
  ...{ name: "ops", kind: "slack", is_default: true, priorities: ["high"], teams: ["finance"] },
  ...{ personal: false, answers: true, off: null, due: 0, due_since: null, parked: 0 },
  ...{ last_sent_at: null, error: null },
};
const delivery = {
  ...{ id: "d", approval_id: "a", channel: "mail", person: "ada", place: null, reason: "asked" as const },
  ...{ priority: "high", status: "parked" as const, attempts: 1, created_at: "2027-01-15T08:00:00.000Z" },
  ...{ sent_at: null, due_at: null, error: null },
};

describe("channels in words", () => {
  it("says what a channel is for", () => {
    expect(describePurpose(channel)).toBe("slack, for high priority, team finance. People can answer there.");
    expect(describePurpose({ ...channel, kind: "email", personal: true, answers: false })).toBe(
      "email, to people one by one, for high priority, team finance.",
    );
    expect(describePurpose({ ...channel, kind: "dashboard", priorities: [], teams: [] })).toBe(
      "Always there",
    );
  });

  it("counts what waits", () => {
    expect([0, 1, 2, 1_000].map(describeBacklog)).toEqual([
      "Nothing waits to be sent.",
      "1 message waits to be sent.",
      "2 messages wait to be sent.",
      "1,000 or more messages wait to be sent.",
    ]);
  });

  it("says what a message was and to whom", () => {
    expect(describeDelivery(delivery)).toBe("To ada through mail: asks to decide");
    expect(describeDelivery({ ...delivery, person: null, place: "#ops", reason: "escalated" })).toBe(
      "To #ops through mail: asks more people to decide",
    );
    expect(describeDelivery({ ...delivery, person: null, reason: "group" })).toBe(
      "Through mail: says how many calls wait",
    );
  });
});
