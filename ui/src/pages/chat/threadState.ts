import type { ApprovalJson } from "../../api/approvals";
import { parseJson } from "../../api/json";
import type { ServerEvent } from "../../live/sse";
import {
  toAskedEntryOf,
  toDecidedEntry,
  toEntry,
  toResultEntry,
  toSuggestions,
  type ChatCall,
  type EndedEntry,
  type Line,
  type RepliedEntry,
  type ThreadDetails,
  type ThreadEntry,
  type ToolCall,
} from "./threadEntries";

/** The stream position `line.n`, and the number of events of that line. */
interface StreamPosition {
  line: number;
  n: number;
  events: number;
}

/** A reply that is being streamed, and the line before it. */
interface ReplyDraft {
  afterLine: number;
  text: string;
}

/** The state of a thread: one entry per line, from its log or its stream, and the streamed reply. */
export interface ThreadState {
  entries: ReadonlyMap<number, ThreadEntry>;
  draft: ReplyDraft | null;
  position: StreamPosition;
  /** The last line that ended a reply: deltas of earlier lines are already in it. */
  endedLine: number;
  status: "idle" | "working" | "waiting";
}

export const EMPTY_THREAD: ThreadState = {
  entries: new Map(),
  draft: null,
  position: { line: 0, n: 0, events: 0 },
  endedLine: 0,
  status: "idle",
};

const ENDING_KINDS = new Set<string>(["replied", "failed", "stopped", "ended"]);

/** Applies one event, received at `now` of this browser's clock. A repeated event changes nothing. */
export function applyEvent(state: ThreadState, event: ServerEvent, now: number): ThreadState {
  const at = parsePosition(event.id, state.position);
  if (!isAfter(at, state.position)) return state;
  const data = parseJson(event.data) as Record<string, unknown>;
  if (event.event === "delta") return applyDelta(state, at, data);
  const moved = { ...state, position: { ...at, events: at.events + 1 } };
  switch (event.event) {
    case "tool_call_start":
      return addCall(moved, at.line, data.tool_call as ChatCall);
    case "tool_call_result":
      return { ...addEntry(moved, at.line, toResultEntry(data.tool_call as ToolCall)), status: "working" };
    case "approval_request":
      return addRequest(moved, at.line, data, now);
    case "approval_resolved":
      return addEntry(moved, at.line, toDecidedEntry(data, String(data.approval_id)));
    case "done":
      return endTurn(finishReply(moved, Number(data.message_id)), at.line, {
        kind: "ended",
        status: data.stopped ? "stopped" : "done",
        reason: "",
        suggestions: toSuggestions(data),
      });
    case "error":
      return endTurn(moved, at.line, {
        kind: "ended",
        status: String(data.status ?? "error"),
        reason: String(data.error ?? ""),
        suggestions: [],
      });
    default:
      return moved;
  }
}

/** Adds the user's message at the server's line number. */
export function addUserMessage(state: ThreadState, line: number, text: string): ThreadState {
  return { ...addEntry(state, line, { kind: "said", text, via: "" }), status: "working" };
}

/**
 * Applies the thread's log, or its lines after `after`. While the stream is followed, it keeps its own position;
 * otherwise it continues after these lines.
 */
export function applyThread(
  state: ThreadState,
  thread: ThreadDetails,
  after: number,
  mode: "followed" | "resting",
): ThreadState {
  const shown = addEarlierLines(state, thread.lines);
  const end = thread.position ? parsePosition(thread.position, START) : null;
  const isOld = lastLine(state) > Math.max(after, end?.line ?? 0);
  const draft = shown.draft && shown.endedLine > shown.draft.afterLine ? null : shown.draft;
  const advances = mode === "resting" && !draft && end && isAfter(end, state.position);
  return {
    ...shown,
    draft,
    position: advances ? { ...end, events: end.n } : state.position,
    status: isOld ? state.status : toStatus(thread.status),
  };
}

/** Adds earlier lines. */
export function addEarlierLines(state: ThreadState, lines: Line[]): ThreadState {
  const entries = new Map(state.entries);
  let endedLine = state.endedLine;
  for (const line of lines) {
    const entry = toEntry(line);
    const known = entries.get(line.n);
    if (entry)
      entries.set(line.n, entry.kind === "asked" && known?.kind === "asked" ? { ...known, ...entry } : entry);
    if (ENDING_KINDS.has(line.kind)) endedLine = Math.max(endedLine, line.n);
  }
  return lines.length ? { ...state, entries, endedLine } : state;
}

export function lastLine(state: ThreadState): number {
  let last = Math.max(state.position.line, state.endedLine);
  for (const line of state.entries.keys()) last = Math.max(last, line);
  return last;
}

/** Lines count from 1; also 1 without lines. */
export function firstLine(state: ThreadState): number {
  let first = Infinity;
  for (const line of state.entries.keys()) first = Math.min(first, line);
  return state.entries.size ? first : 1;
}

const START: StreamPosition = { line: 0, n: 0, events: 0 };

function parsePosition(id: string, known: StreamPosition): StreamPosition {
  const [line = 0, n = 0] = id.split(".").map(Number);
  return { line, n, events: line === known.line ? known.events : 0 };
}

function isAfter(at: StreamPosition, known: StreamPosition): boolean {
  return at.line > known.line || (at.line === known.line && at.n > known.n);
}

function toStatus(status: string): ThreadState["status"] {
  return status === "idle" || status === "waiting" ? status : "working";
}

function applyDelta(state: ThreadState, at: StreamPosition, data: Record<string, unknown>): ThreadState {
  if (data.reset)
    return { ...state, position: at, draft: null, endedLine: Math.max(state.endedLine, at.line) };
  if (at.line < state.endedLine) return { ...state, position: at };
  const text = String(data.content);
  const isNewReply = at.n - [...text].length === at.events; // a position counts the characters after the events of its line
  const before = isNewReply ? finishReply(state, at.line) : state;
  const draft = before.draft
    ? { ...before.draft, text: before.draft.text + text }
    : { afterLine: at.line, text };
  return { ...before, position: at, draft, status: "working" };
}

/** The streamed reply becomes the entry of this line. */
function finishReply(state: ThreadState, line: number): ThreadState {
  if (!state.draft) return state;
  const reply: RepliedEntry = { kind: "replied", text: state.draft.text, calls: [], isComplete: false };
  return { ...addEntry(state, line, reply), draft: null, endedLine: Math.max(state.endedLine, line) };
}

function addCall(state: ThreadState, line: number, call: ChatCall): ThreadState {
  const ending = finishReply(state, line);
  const known = ending.entries.get(line);
  const endedLine = Math.max(ending.endedLine, line);
  if (known?.kind === "replied" && known.isComplete) return { ...ending, endedLine, status: "working" };
  const before = known?.kind === "replied" ? known : { text: "", calls: [] };
  const calls = [...before.calls, { id: call.id, name: call.name }];
  const entries = new Map(ending.entries).set(line, {
    kind: "replied",
    text: before.text,
    calls,
    isComplete: false,
  });
  return { ...ending, entries, endedLine, status: "working" };
}

function addRequest(
  state: ThreadState,
  line: number,
  data: Record<string, unknown>,
  now: number,
): ThreadState {
  const shown = { ...(data.approval as ApprovalJson), read_at: now };
  const path = (data.agent_path as string[] | undefined) ?? [];
  const entries = new Map(state.entries).set(line, toAskedEntryOf(shown, path));
  return { ...state, entries };
}

function endTurn(state: ThreadState, line: number, ended: EndedEntry): ThreadState {
  const endedLine = Math.max(state.endedLine, line);
  return { ...addEntry(state, line, ended), endedLine, draft: null, status: "idle" };
}

/** An entry from the log is kept: it has more detail than the stream. */
function addEntry(state: ThreadState, line: number, entry: ThreadEntry): ThreadState {
  return state.entries.has(line) ? state : { ...state, entries: new Map(state.entries).set(line, entry) };
}
