import { describe, expect, it } from "vitest";
import { escapeInvisible } from "../../components/escapeInvisible";
import {
  describeEntry,
  EVENT_KINDS,
  groupDeliveries,
  nameActor,
  summarizeDeliveries,
  wasErased,
  type TimelineEntry,
} from "./sentences";
import { listChanges, listFacts } from "./Timeline";

function entry(kind: string, more: Partial<TimelineEntry> = {}): TimelineEntry {
  const at = "2027-01-15T08:00:00.000Z";
  return { seq: 1, at, kind, actor: "bob", approval_id: "id", data: {}, content: null, digest: "", ...more };
}

describe("sentences", () => {
  it.each(EVENT_KINDS)("describes %s without any content", (kind) => {
    const told = describeEntry(entry(kind));
    expect(told.length).toBeGreaterThan("bob ".length);
    expect(told).not.toMatch(/undefined|null|NaN|\[object/);
  });

  it("name the actor, the action and the reason", () => {
    expect(
      describeEntry(entry("proposed", { actor: "agent:bot", data: { tool: "pay", rule: "money" } })),
    ).toBe("The agent bot asked to run pay (rule “money”)");
    expect(
      describeEntry(
        entry("denied", { actor: "agent:bot", data: { tool: "pay", rule: "money", by: "preview" } }),
      ),
    ).toBe("The agent bot wanted to run pay, which would have failed, so it was not run");
    expect(
      describeEntry(
        entry("decision_refused", { data: { error: "forbidden" }, content: { kind: "approve" } }),
      ),
    ).toBe("bob tried to approve it and was refused: not allowed to decide it");
    expect(
      describeEntry(
        entry("decision_refused", {
          data: { error: "invalid_request" },
          content: { kind: "", fields: ["/comment", "/x\u202e"] },
        }),
      ),
    ).toBe("bob tried to decide it and was refused: the answer was invalid (/comment, /x\\u{202e})");
    expect(
      describeEntry(
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
    expect(describeEntry(entry("delegated", { content: { to: { users: ["eve"], teams: ["ops"] } } }))).toBe(
      "bob delegated it to eve, the team ops",
    );
    expect(describeEntry(entry("something_new"))).toBe("bob something new");
  });

  it.each([
    ["thread_confirming", { tool: "pay" }, "bob was asked to confirm pay in a chat"],
    ["thread_confirmed", { tool: "pay", answer: "yes" }, "bob answered yes in a chat"],
    ["thread_confirmed", { tool: "pay", answer: "no" }, "bob answered no in a chat"],
    ["thread_confirmed", { tool: "pay", answer: "closed" }, "bob left a question unanswered in a chat"],
  ])("name who was asked and who answered: %s %j", (kind, data, sentence) => {
    expect(describeEntry(entry(kind, { data }))).toBe(sentence);
  });

  it("escape invisible characters in names", () => {
    expect(nameActor("agent:b\u202eot")).toBe("The agent b\\u{202e}ot");
    expect(escapeInvisible("a\u00a0b\\c\u200d d")).toBe("a\\u{a0}b\\\\c\\u{200d} d");
  });

  it("distinguish erased content from missing content", () => {
    expect([wasErased(entry("approved", { digest: "abc" })), wasErased(entry("started"))]).toEqual([
      true,
      false,
    ]);
  });
});

describe("facts", () => {
  it("list the channel, the digests and the texts", () => {
    const content = {
      via: "web",
      args_sha256: "ab12",
      comment: "fine",
      reason: "",
      acknowledged: ["mixed:/to"],
    };
    expect(listFacts(entry("approved", { content, data: { quorum: [1, 2] } }))).toEqual([
      { label: "via", text: "web" },
      { label: "saw arguments", text: "ab12", style: "code" },
      { label: "needs", text: "1, then 2 people" },
      { label: "acknowledged", text: "mixed:/to" },
      { label: "comment", text: "fine", style: "quote" },
    ]);
    expect(listChanges(entry("edited"))).toEqual([]);
  });
});

let seq = 0;

function deliveryEntry(
  kind: string,
  channel = "",
  content: TimelineEntry["content"] = null,
  what = "sent",
): TimelineEntry {
  seq += 1;
  const data = channel ? { channel, what, reason: "asked" } : {};
  const at = "2027-01-15T08:00:00.000Z";
  return { seq, at, kind, actor: "interlock", approval_id: "id", data, content, digest: "" };
}

describe("deliveries", () => {
  it("in a row are one step, and a single one stays a line", () => {
    const [a, b, c, d, e] = [
      deliveryEntry("proposed"),
      deliveryEntry("delivered", "mail", { person: "ada" }),
      deliveryEntry("delivered", "mail", { person: "bob" }),
      deliveryEntry("approved"),
      deliveryEntry("delivered", "mail", { person: "ada" }, "changed"),
    ];
    expect(groupDeliveries([a, b, c, d, e] as TimelineEntry[])).toEqual([a, [b, c], d, e]);
    expect(groupDeliveries([])).toEqual([]);
  });

  it("are summarized by channel, with the names that are stored", () => {
    const told = ["ada", "bob", "eve", "vic", "zoe", "ann"].map((person) =>
      deliveryEntry("delivered", "mail", { person }),
    );
    expect(
      summarizeDeliveries([
        ...told,
        deliveryEntry("delivered", "pager"),
        deliveryEntry("delivery_parked", "hook"),
      ]),
    ).toBe(
      "Interlock notified ada, bob, eve, vic and 2 more via mail, and people via pager; one message failed",
    );
    expect(
      summarizeDeliveries([
        deliveryEntry("delivery_parked", "hook"),
        deliveryEntry("delivery_parked", "hook"),
      ]),
    ).toBe("Interlock could not deliver 2 messages");
  });

  it("name the recipient and the channel", () => {
    expect(describeEntry(deliveryEntry("delivered", "mail", { person: "a\u202eda" }))).toBe(
      "Interlock notified a\\u{202e}da via mail",
    );
    expect(describeEntry(deliveryEntry("delivered", "slack", { place: "#ops" }, "reminded"))).toBe(
      "Interlock reminded #ops via slack",
    );
    expect(describeEntry(deliveryEntry("delivered", "pager", null, "changed"))).toBe(
      "Interlock notified people via pager of a change",
    );
    expect(
      describeEntry(deliveryEntry("delivery_parked", "mail", { person: "ada", error: "It is full." })),
    ).toBe("Interlock could not notify ada via mail: It is full.");
  });
});
