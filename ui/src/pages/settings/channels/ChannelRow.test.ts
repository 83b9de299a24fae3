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

describe("the description of a channel", () => {
  it("names its kind and routes", () => {
    expect(describePurpose(channel)).toBe("slack, for high priority, team finance. People can answer there.");
    expect(describePurpose({ ...channel, kind: "email", personal: true, answers: false })).toBe(
      "email, to each person individually, for high priority, team finance.",
    );
    expect(describePurpose({ ...channel, kind: "dashboard", priorities: [], teams: [] })).toBe(
      "Always available",
    );
  });

  it("counts queued messages", () => {
    expect([0, 1, 2, 1_000].map(describeBacklog)).toEqual([
      "No messages queued.",
      "1 message queued.",
      "2 messages queued.",
      "1,000 or more messages queued.",
    ]);
  });

  it("names the recipient and the reason of a message", () => {
    expect(describeDelivery(delivery)).toBe("To ada via mail: request for a decision");
    expect(describeDelivery({ ...delivery, person: null, place: "#ops", reason: "escalated" })).toBe(
      "To #ops via mail: escalation",
    );
    expect(describeDelivery({ ...delivery, person: null, reason: "group" })).toBe(
      "Via mail: number of pending calls",
    );
  });
});
