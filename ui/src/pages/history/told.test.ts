import { describe, expect, it } from "vitest";
import { sentence, type Entry } from "./sentences";
import { folded, summary } from "./told";

let seq = 0;
function entry(kind: string, channel = "", content: Entry["content"] = null, what = "sent"): Entry {
  seq += 1;
  const data = channel ? { channel, what, reason: "asked" } : {};
  const at = "2027-01-15T08:00:00.000Z";
  return { seq, at, kind, actor: "interlock", approval_id: "id", data, content, digest: "" };
}

describe("what was told", () => {
  it("is one step where many were told in one go, and stays a line where it is alone", () => {
    const [a, b, c, d, e] = [
      entry("proposed"),
      entry("delivered", "mail", { person: "ada" }),
      entry("delivered", "mail", { person: "bob" }),
      entry("approved"),
      entry("delivered", "mail", { person: "ada" }, "changed"),
    ];
    expect(folded([a, b, c, d, e] as Entry[])).toEqual([a, [b, c], d, e]);
    expect(folded([])).toEqual([]);
  });

  it("is summed up by channel, with names as far as they are kept", () => {
    const told = ["ada", "bob", "eve", "vic", "zoe", "ann"].map((person) =>
      entry("delivered", "mail", { person }),
    );
    expect(summary([...told, entry("delivered", "pager"), entry("delivery_parked", "hook")])).toBe(
      "Interlock told ada, bob, eve, vic and 2 more through mail, and people through pager; one message was given up",
    );
    expect(summary([entry("delivery_parked", "hook"), entry("delivery_parked", "hook")])).toBe(
      "Interlock gave up 2 messages to people",
    );
  });

  it("is told with whom and where", () => {
    expect(sentence(entry("delivered", "mail", { person: "a\u202eda" }))).toBe(
      "Interlock told a\\u{202e}da through mail",
    );
    expect(sentence(entry("delivered", "slack", { place: "#ops" }, "reminded"))).toBe(
      "Interlock reminded #ops through slack",
    );
    expect(sentence(entry("delivered", "pager", null, "changed"))).toBe(
      "Interlock told people through pager what has changed",
    );
    expect(sentence(entry("delivery_parked", "mail", { person: "ada", error: "It is full." }))).toBe(
      "Interlock gave up telling ada through mail: It is full.",
    );
  });
});
