import { describe, expect, it } from "vitest";
import type { ServerEvent } from "../../live/sse";
import type { ThreadDetails } from "./threadEntries";
import {
  addEarlierLines,
  addUserMessage,
  applyEvent,
  applyThread,
  EMPTY_THREAD,
  firstLine,
  lastLine,
  type ThreadState,
} from "./threadState";
import { buildTranscript, hasUndoableRejection, openCards } from "./transcriptItems";

type Line = ThreadDetails["lines"][number];

const CALL = { id: "c1", name: "issue_create", args: { title: "Fix" } };
const LINES: Line[] = [
  line(1, "said", { text: "create it" }),
  line(2, "replied", { text: "I propose ü🙂.", calls: [CALL, { id: "c2", name: "pages_list", args: {} }] }),
  line(3, "asked", { approval: "a1", call: "c1", tool: "issue_create", status: "pending" }),
  line(4, "resulted", { call: "c2", tool: "pages_list", status: "succeeded", result: [] }),
  line(5, "decided", { approval: "a1", status: "approved" }),
  line(6, "resulted", { call: "c1", tool: "issue_create", status: "succeeded", result: { id: 9 } }),
  line(7, "replied", { text: "Done 🙂 so.", calls: [] }),
  line(8, "ended", { status: "done", message: 7 }),
  line(9, "said", { text: "and?" }),
  line(10, "replied", { text: "First answer.", calls: [] }), // another message arrived in the meantime: the turn continues
  line(11, "replied", { text: "Second answer.", calls: [] }),
  line(12, "ended", { status: "done", message: 11 }),
  line(13, "said", { text: "fail" }),
  line(14, "ended", { status: "error", reason: "The model failed." }),
];
const STARTED = addUserMessage(EMPTY_THREAD, 1, "go");
const SAID: [number, string][] = [
  [1, "create it"],
  [9, "and?"],
  [13, "fail"],
];

describe("thread state from the stream", () => {
  const whole = heard(LINES, "0.0", 3);

  it("equals the state from the log, except for details that only the log has", () => {
    expect(buildTranscript(followed(whole).entries).map(plain)).toEqual(
      buildTranscript(logged().entries).map(plain),
    );
    expect(followed(whole).status).toBe("idle");
    expect(followed(whole).draft).toBeNull();
  });

  it("is the same if events are repeated", () => {
    expect(followed([...whole, ...whole])).toEqual(followed(whole));
    expect(followed(whole.flatMap((sent) => [sent, sent]))).toEqual(followed(whole));
  });

  it.each([1, 4, 50])(
    "is the same wherever the stream is interrupted and resumed, %i characters at a time",
    (size) => {
      const first = heard(LINES, "0.0", 3);
      const end = followed(first);
      for (let cut = 0; cut <= first.length; cut++) {
        const before = followed(first.slice(0, cut));
        const { line: at, n } = before.position;
        const after = heard(LINES, `${at}.${n}`, size);
        expect(after.reduce(hear, before).entries).toEqual(end.entries);
      }
    },
  );

  it("is the same if the log is read in the middle of the stream", () => {
    const end = buildTranscript(followed(whole).entries).map(plain);
    for (let cut = 0; cut <= whole.length; cut++) {
      const before = whole.slice(0, cut).reduce(hear, EMPTY_THREAD);
      const looked = applyThread(before, thread(LINES.slice(0, 8), "8.1"), lastLine(before), "followed");
      const after = SAID.reduce(
        (story, [n, text]) => addUserMessage(story, n, text),
        whole.slice(cut).reduce(hear, looked),
      );
      expect(buildTranscript(after.entries).map(plain)).toEqual(end);
    }
  });
});

describe("a rejection", () => {
  const asked = LINES.slice(0, 3);
  const rejected = line(4, "decided", {
    approval: "a1",
    status: "rejected",
    release_at: "2027-01-15T08:00:08Z",
  });
  const again = line(5, "asked", {
    approval: "a1",
    call: "c1",
    tool: "issue_create",
    status: "pending",
    reopened: true,
  });
  const final = line(5, "decided", { approval: "a1", status: "rejected" });

  it.each([
    ["is open", asked, ["a1"], false],
    ["is rejected at once", [...asked, rejected], [], true],
    ["is open again, in its place, if that is undone", [...asked, rejected, again], ["a1"], false],
    ["stays rejected otherwise", [...asked, rejected, final], [], false],
  ])("of a card that %s", (_, lines, open, isUndoable) => {
    const items = buildTranscript(followed(heard(lines, "0.0", 3)).entries);
    expect(items.map(({ kind }) => kind).filter((kind) => kind === "card")).toHaveLength(1);
    const approvals = openCards(items).map(({ approval }) => approval);
    expect([approvals, hasUndoableRejection(items)]).toEqual([open, isUndoable]);
  });
});

describe("a reply draft", () => {
  it("is dropped on a reset", () => {
    const half = [delta("1.4", "Half"), delta("1.9", " of it")].reduce(hear, STARTED);
    expect(half.draft?.text).toBe("Half of it");
    const reset = hear(half, sent("2.0", "delta", { content: "", reset: true }));
    expect(reset.draft).toBeNull();
    expect(hear(reset, delta("2.5", "Anew.")).draft?.text).toBe("Anew.");
  });

  it("is not repeated when the log already has the reply", () => {
    const half = hear(STARTED, delta("1.4", "Half"));
    const looked = applyThread(half, thread(LINES.slice(0, 3), "3.1"), 1, "followed");
    expect(looked.draft).toBeNull();
    expect(hear(looked, delta("1.9", " of it")).draft).toBeNull();
  });

  it("continues when a sub-agent's card arrives in between", () => {
    const request = sent("2.5", "approval_request", { approval: { id: "a7" }, agent_path: ["one", "two"] });
    const story = [delta("1.4", "Half"), request, delta("2.8", " of")].reduce(hear, STARTED);
    expect(story.draft?.text).toBe("Half of");
  });
});

describe("the log", () => {
  it("sets the stream position, unless a reply is being streamed", () => {
    const rested = applyThread(EMPTY_THREAD, thread(LINES, "14.1"), 0, "resting");
    expect(rested.position).toEqual({ line: 14, n: 1, events: 1 });
    const half = hear(STARTED, delta("1.4", "Half"));
    expect(applyThread(half, thread([], null), 1, "resting").position).toEqual(half.position);
  });

  it("does not override a newer status from the stream", () => {
    const end = followed(heard(LINES, "0.0", 3));
    expect(
      applyThread(end, { ...thread(LINES.slice(0, 6), "6.1"), status: "running" }, 0, "followed").status,
    ).toBe("idle");
  });

  it("can be loaded backwards", () => {
    const late = applyThread(EMPTY_THREAD, thread(LINES.slice(4), "14.1"), 0, "resting");
    expect(firstLine(late)).toBe(5);
    const all = addEarlierLines(late, LINES.slice(0, 4));
    expect(buildTranscript(all.entries).map(plain)).toEqual(buildTranscript(logged().entries).map(plain));
    expect(all.position).toEqual(late.position);
  });
});

describe("an event", () => {
  it("of an unknown kind only advances the position", () => {
    const story = hear(EMPTY_THREAD, sent("3.1", "something_new", { a: 1 }));
    expect(story.entries.size).toBe(0);
    expect(story.position.line).toBe(3);
  });

  it.each([
    ["done", { message_id: "2", stopped: true }, "stopped"],
    ["done", { message_id: "2" }, "done"],
    ["error", { error: "No.", status: "limit" }, "limit"],
    ["error", { error: "No.", status: "error" }, "error"],
  ])("%s ends the turn", (event, data, status) => {
    const story = hear(STARTED, sent("3.1", event, data));
    expect(story.entries.get(3)).toMatchObject({ kind: "ended", status });
    expect(story.status).toBe("idle");
  });

  it("offers the suggestions of the last turn, from the stream as from the log", () => {
    const suggestions = ["List pages", "List posts"];
    const asked = addUserMessage(EMPTY_THREAD, 1, "hm");
    const heard = hear(asked, sent("3.1", "done", { message_id: "2", suggestions }));
    const read = addEarlierLines(asked, [line(3, "ended", { status: "done", message: 2, suggestions })]);
    for (const state of [heard, read])
      expect(buildTranscript(state.entries).at(-1)).toMatchObject({
        kind: "suggestions",
        phrases: suggestions,
      });
    const answered = addUserMessage(heard, 4, "List pages");
    expect(buildTranscript(answered.entries).map(({ kind }) => kind)).toEqual(["said", "said"]);
  });

  it("of an approval request keeps its snapshot", () => {
    const story = hear(
      EMPTY_THREAD,
      sent("3.1", "approval_request", { approval: { id: "a1", tool: "t", call_id: "2:c1" } }),
    );
    expect(story.entries.get(3)).toMatchObject({ kind: "asked", approval: "a1", shown: { tool: "t" } });
    const looked = addEarlierLines(story, LINES.slice(2, 3));
    expect(looked.entries.get(3)).toMatchObject({ shown: { tool: "t" } });
  });
});

function hear(story: ThreadState, told: ServerEvent): ThreadState {
  return applyEvent(story, told, 0);
}

function line(n: number, kind: string, body: Record<string, unknown>): Line {
  return { n, kind, body, at: "", actor: "" };
}

function thread(lines: Line[], position: string | null): ThreadDetails {
  const about = {
    id: "t",
    agent: "a",
    user: "u",
    title: "",
    agent_missing: false,
    created_at: "",
    updated_at: "",
  };
  return { ...about, status: "idle", lines, position, confirmation: null };
}

function logged(): ThreadState {
  return applyThread(EMPTY_THREAD, thread(LINES, "14.1"), 0, "resting");
}

function followed(events: ServerEvent[]): ThreadState {
  return events.reduce(
    hear,
    SAID.reduce((story, [n, text]) => addUserMessage(story, n, text), EMPTY_THREAD),
  );
}

function plain(item: ReturnType<typeof buildTranscript>[number]): unknown {
  return JSON.parse(JSON.stringify(item, (key, value: unknown) => (UNTOLD.has(key) ? undefined : value)));
}
const UNTOLD = new Set(["args", "shown", "whole"]);

function sent(id: string, event: string, data: Record<string, unknown>): ServerEvent {
  return { id, event, data: JSON.stringify({ type: event, thread_id: "t", ...data }) };
}

function delta(id: string, content: string): ServerEvent {
  return sent(id, "delta", { content });
}

/** The events that the server sends after a position, with `size` characters of text in each delta. */
function heard(lines: Line[], after: string, size: number): ServerEvent[] {
  const [line = 0, n = 0] = after.split(".").map(Number);
  const told: ServerEvent[] = [];
  let place = { line: 0, pieces: 0, spoken: line === 0 ? n : 0 };
  for (const each of lines.filter((each) => each.n >= line)) {
    const pieces = piecesOf(each);
    const skip = each.n === line ? n : 0;
    if (each.n === line && skip >= pieces.length) {
      place = { line, pieces: pieces.length, spoken: skip - pieces.length };
      continue;
    }
    if (each.kind === "replied" && !skip) {
      const words = [...String(each.body.text)];
      for (let at = place.spoken; at < words.length; at += size) {
        const piece = words.slice(at, at + size);
        told.push(delta(`${place.line}.${place.pieces + at + piece.length}`, piece.join("")));
      }
    }
    pieces.forEach((piece, index) => {
      if (index >= skip) told.push(sent(`${each.n}.${index + 1}`, ...piece));
    });
    const ends = each.kind === "replied" || each.kind === "ended";
    if (pieces.length || ends) place = { line: each.n, pieces: pieces.length, spoken: 0 };
  }
  return told;
}

const nameOf = ({ id, name }: typeof CALL) => ({ id, name });

function piecesOf({ kind, body }: Line): [string, Record<string, unknown>][] {
  switch (kind) {
    case "replied":
      return (body.calls as (typeof CALL)[]).map((call) => ["tool_call_start", { tool_call: nameOf(call) }]);
    case "asked": {
      const approval = { id: body.approval, tool: body.tool, call_id: `2:${String(body.call)}` };
      return [["approval_request", { approval }]];
    }
    case "decided":
      return [["approval_resolved", { ...body, approval_id: body.approval, approved: true }]];
    case "resulted": {
      const call = { id: body.call, name: body.tool, status: body.status, result: body.result };
      return [["tool_call_result", { tool_call: call }]];
    }
    case "ended":
      if (body.status === "error") return [["error", { error: body.reason, status: "error" }]];
      return [["done", { message_id: String(body.message) }]];
    default:
      return [];
  }
}
