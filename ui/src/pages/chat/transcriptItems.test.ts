import { describe, expect, it } from "vitest";
import type { Line } from "./threadEntries";
import { addEarlierLines, EMPTY_THREAD } from "./threadState";
import { buildTranscript, isAskingToConfirm, openCards, type TranscriptItem } from "./transcriptItems";

const SAID = line(1, "said", { text: "do it" });
const CALLS = [
  { id: "c1", name: "issue_create", args: {} },
  { id: "c2", name: "pages_list", args: {} },
];
const QUESTION = { requires_confirmation: true, message: "Delete it?", would: null };

describe("a call with a request", () => {
  const lines = [
    SAID,
    line(2, "replied", { text: "", calls: CALLS }),
    line(3, "asked", { approval: "a1", call: "c1", tool: "issue_create", status: "pending" }),
    line(4, "resulted", { call: "c2", tool: "pages_list", status: "succeeded", result: [] }),
  ];

  it("is one item, in the place of the call", () => {
    expect(shown(lines)).toEqual(["said", "card issue_create", "call pages_list"]);
    expect(openCards(transcript(lines))).toEqual([{ approval: "a1", tool: "issue_create" }]);
  });

  it("gets the call's result", () => {
    const decided = line(5, "decided", { approval: "a1", status: "approved" });
    const result = line(6, "resulted", { call: "c1", tool: "issue_create", status: "failed", result: {} });
    const items = transcript([...lines, decided, result]);
    expect(items[1]).toMatchObject({
      kind: "card",
      call: { name: "issue_create" },
      result: { status: "failed" },
    });
    expect(openCards(items)).toEqual([]);
  });

  it("stays a call beside the request of a sub-agent", () => {
    const asked = {
      approval: "a1",
      call: "c1",
      tool: "publish",
      status: "pending",
      child: "t2",
      path: ["a", "b"],
    };
    expect(shown([...lines.slice(0, 2), line(3, "asked", asked)])).toEqual([
      "said",
      "call issue_create",
      "call pages_list",
      "card publish",
    ]);
  });
});

describe("a confirmation", () => {
  const asked = [
    SAID,
    line(2, "replied", { text: "", calls: CALLS.slice(0, 1) }),
    line(3, "resulted", { call: "c1", tool: "issue_create", status: "confirming", result: QUESTION }),
  ];
  const reply = line(4, "replied", { text: "Shall I delete it?", calls: [] });

  it("is shown once, in the place of its call; the agent's version of it is folded", () => {
    expect(shown(asked)).toEqual(["said", "confirmation asked"]);
    expect(isAskingToConfirm(transcript(asked))).toBe(true);
    const ended = [...asked, reply, line(5, "ended", { status: "done" })];
    expect(shown(ended)).toEqual(["said", "confirmation open", "aside"]);
    expect(isAskingToConfirm(transcript(ended))).toBe(false);
  });

  it("is over with a turn that failed, and with the next message", () => {
    expect(shown([...asked, line(4, "ended", { status: "error" })])[1]).toBe("confirmation over");
    const closed = [...asked, reply, line(5, "ended", { status: "done" }), line(6, "said", { text: "no" })];
    expect(shown(closed)).toEqual(["said", "confirmation over", "aside", "said"]);
  });

  it("folds no reply that is about other results too", () => {
    const mixed = [
      SAID,
      line(2, "replied", { text: "", calls: CALLS }),
      line(3, "resulted", { call: "c1", tool: "issue_create", status: "confirming", result: QUESTION }),
      line(4, "resulted", { call: "c2", tool: "pages_list", status: "succeeded", result: [] }),
      line(5, "replied", { text: "Three pages. Shall I go on?", calls: [] }),
    ];
    expect(shown(mixed)).toEqual(["said", "confirmation asked", "call pages_list", "reply"]);
  });
});

it("keeps what was said before a stop", () => {
  const lines = [
    SAID,
    line(2, "replied", { text: "Once upon a", calls: [], stopped: true }),
    line(3, "stopped", {}),
    line(4, "ended", { status: "stopped", message: 2 }),
  ];
  expect(shown(lines)).toEqual(["said", "reply", "end"]);
});

function transcript(lines: Line[]): TranscriptItem[] {
  return buildTranscript(addEarlierLines(EMPTY_THREAD, lines).entries);
}

function shown(lines: Line[]): string[] {
  return transcript(lines).map((item) => {
    if (item.kind === "card") return `card ${item.asked.tool}`;
    if (item.kind === "call") return `call ${item.call.name}`;
    if (item.kind === "confirmation") return `confirmation ${item.state}`;
    return item.kind === "reply" && item.isAside ? "aside" : item.kind;
  });
}

function line(n: number, kind: string, body: Record<string, unknown>): Line {
  return { n, kind, body, at: "", actor: "" };
}
