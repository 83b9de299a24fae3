import type { ApprovalJson } from "../../api/approvals";
import type { Schemas } from "../../api/client";
import { parseJson } from "../../api/json";
import type { ServerEvent } from "../../live/sse";

export type ThreadDetails = Schemas["ThreadDetails"];
type Line = Schemas["ThreadLine"];

export interface ChatCall {
  id: string;
  name: string;
  args?: unknown;
}

interface SaidEntry {
  kind: "said";
  text: string;
}
interface RepliedEntry {
  kind: "replied";
  text: string;
  calls: ChatCall[];
  /** Read from the thread's log, not put together from its stream. */
  whole: boolean;
}
export interface AskedEntry {
  kind: "asked";
  approval: string;
  path: string[];
  shown?: ApprovalJson & { read_at: number };
}
export interface DecidedEntry {
  kind: "decided";
  approval: string;
  status: string;
  reason: string;
}
export interface ResultEntry {
  kind: "resulted";
  call: string;
  name: string;
  status: string;
  result: unknown;
}
export interface EndedEntry {
  kind: "ended";
  status: string;
  reason: string;
}
interface FailedEntry {
  kind: "failed";
  reason: string;
}
interface ErasedEntry {
  kind: "erased";
}
export type ThreadEntry =
  SaidEntry | RepliedEntry | AskedEntry | DecidedEntry | ResultEntry | EndedEntry | FailedEntry | ErasedEntry;

/** Where the stream stands: `line.n`, and how many events of that line were told. */
interface StreamPosition {
  line: number;
  n: number;
  pieces: number;
}

/** Words that are being said, and the line that they began behind. */
interface ReplyDraft {
  behind: number;
  words: string;
}

/** What is known of a thread: one fact for each line, from its log or its stream, and what is being said now. */
export interface ThreadState {
  facts: ReadonlyMap<number, ThreadEntry>;
  draft: ReplyDraft | null;
  place: StreamPosition;
  /** The last line known that ended what was being said: words behind earlier lines are in it already. */
  over: number;
  status: "idle" | "working" | "waiting";
}

export const EMPTY_THREAD: ThreadState = {
  facts: new Map(),
  draft: null,
  place: { line: 0, n: 0, pieces: 0 },
  over: 0,
  status: "idle",
};

const ENDS = new Set<string>(["replied", "failed", "stopped", "ended"]);

/** One event of the stream, heard at `now` of this browser's clock. Told again, it changes nothing. */
export function applyEvent(story: ThreadState, sent: ServerEvent, now: number): ThreadState {
  const at = placeOf(sent.id, story.place);
  if (!isBehind(at, story.place)) return story;
  const data = parseJson(sent.data) as Record<string, unknown>;
  if (sent.event === "delta") return spoken(story, at, data);
  const moved = { ...story, place: { ...at, pieces: at.pieces + 1 } };
  switch (sent.event) {
    case "tool_call_start":
      return started(moved, at.line, data.tool_call as ChatCall);
    case "tool_call_result":
      return { ...noted(moved, at.line, resultOf(data.tool_call as ToolCall)), status: "working" };
    case "approval_request":
      return asked(moved, at.line, data, now);
    case "approval_resolved":
      return noted(moved, at.line, decisionOf(data, String(data.approval_id)));
    case "done":
      return ended(finished(moved, Number(data.message_id)), at.line, data.stopped ? "stopped" : "done", "");
    case "error":
      return ended(moved, at.line, String(data.status ?? "error"), String(data.error ?? ""));
    default:
      return moved;
  }
}

/** What the person said, where the server put it. */
export function addUserMessage(story: ThreadState, line: number, text: string): ThreadState {
  return { ...noted(story, line, { kind: "said", text }), status: "working" };
}

/**
 * The thread's log, or what of it is new behind line `after`. While its stream is followed, that says where it stands;
 * otherwise it is followed from behind these lines on.
 */
export function applyThread(
  story: ThreadState,
  thread: ThreadDetails,
  after: number,
  how: "followed" | "resting",
): ThreadState {
  const shown = addEarlierLines(story, thread.lines);
  const end = thread.position ? placeOf(thread.position, NOWHERE) : null;
  const isOld = lastLine(story) > Math.max(after, end?.line ?? 0);
  const draft = shown.draft && shown.over > shown.draft.behind ? null : shown.draft;
  const moves = how === "resting" && !draft && end && isBehind(end, story.place);
  return {
    ...shown,
    draft,
    place: moves ? { ...end, pieces: end.n } : story.place,
    status: isOld ? story.status : statusOf(thread.status),
  };
}

/** Lines from before those that are known. */
export function addEarlierLines(story: ThreadState, lines: Line[]): ThreadState {
  const facts = new Map(story.facts);
  let over = story.over;
  for (const line of lines) {
    const fact = factOf(line);
    const known = facts.get(line.n);
    if (fact)
      facts.set(line.n, fact.kind === "asked" && known?.kind === "asked" ? { ...known, ...fact } : fact);
    if (ENDS.has(line.kind)) over = Math.max(over, line.n);
  }
  return lines.length ? { ...story, facts, over } : story;
}

export function lastLine(story: ThreadState): number {
  let last = Math.max(story.place.line, story.over);
  for (const line of story.facts.keys()) last = Math.max(last, line);
  return last;
}

/** Lines count from 1; 1 also if nothing is known. */
export function firstLine(story: ThreadState): number {
  let first = Infinity;
  for (const line of story.facts.keys()) first = Math.min(first, line);
  return story.facts.size ? first : 1;
}

const NOWHERE: StreamPosition = { line: 0, n: 0, pieces: 0 };

function placeOf(id: string, known: StreamPosition): StreamPosition {
  const [line = 0, n = 0] = id.split(".").map(Number);
  return { line, n, pieces: line === known.line ? known.pieces : 0 };
}

function isBehind(at: StreamPosition, known: StreamPosition): boolean {
  return at.line > known.line || (at.line === known.line && at.n > known.n);
}

function statusOf(status: string): ThreadState["status"] {
  return status === "idle" || status === "waiting" ? status : "working";
}

function spoken(story: ThreadState, at: StreamPosition, data: Record<string, unknown>): ThreadState {
  if (data.reset) return { ...story, place: at, draft: null, over: Math.max(story.over, at.line) };
  if (at.line < story.over) return { ...story, place: at };
  const words = String(data.content);
  const begins = at.n - [...words].length === at.pieces; // a position counts characters behind the events of its line
  const before = begins ? finished(story, at.line) : story;
  const draft = before.draft
    ? { ...before.draft, words: before.draft.words + words }
    : { behind: at.line, words };
  return { ...before, place: at, draft, status: "working" };
}

/** What was being said is a reply now, of this line. */
function finished(story: ThreadState, line: number): ThreadState {
  if (!story.draft) return story;
  const reply: RepliedEntry = { kind: "replied", text: story.draft.words, calls: [], whole: false };
  return { ...noted(story, line, reply), draft: null, over: Math.max(story.over, line) };
}

function started(story: ThreadState, line: number, call: ChatCall): ThreadState {
  const ending = finished(story, line);
  const known = ending.facts.get(line);
  const over = Math.max(ending.over, line);
  if (known?.kind === "replied" && known.whole) return { ...ending, over, status: "working" };
  const before = known?.kind === "replied" ? known : { text: "", calls: [] };
  const calls = [...before.calls, { id: call.id, name: call.name }];
  const facts = new Map(ending.facts).set(line, { kind: "replied", text: before.text, calls, whole: false });
  return { ...ending, facts, over, status: "working" };
}

function asked(story: ThreadState, line: number, data: Record<string, unknown>, now: number): ThreadState {
  const approval = data.approval as ApprovalJson;
  const shown = { ...approval, read_at: now };
  const path = (data.agent_path as string[] | undefined) ?? [];
  const facts = new Map(story.facts).set(line, { kind: "asked", approval: approval.id, path, shown });
  return { ...story, facts };
}

function ended(story: ThreadState, line: number, status: string, reason: string): ThreadState {
  const over = Math.max(story.over, line);
  return { ...noted(story, line, { kind: "ended", status, reason }), over, draft: null, status: "idle" };
}

/** What the log said of a line stays: it says more than the stream. */
function noted(story: ThreadState, line: number, fact: ThreadEntry): ThreadState {
  return story.facts.has(line) ? story : { ...story, facts: new Map(story.facts).set(line, fact) };
}

interface ToolCall extends ChatCall {
  result: unknown;
  status?: string;
}

function resultOf({ id, name, result, status = "" }: ToolCall): ResultEntry {
  return { kind: "resulted", call: id, name, result, status };
}

function decisionOf(data: Record<string, unknown>, approval: string): DecidedEntry {
  return { kind: "decided", approval, status: String(data.status), reason: String(data.reason ?? "") };
}

function factOf({ kind, body }: Line): ThreadEntry | null {
  switch (kind) {
    case "said":
      return { kind, text: String(body.text) };
    case "replied":
      return {
        kind,
        text: String(body.text),
        calls: (body.calls as ChatCall[] | undefined) ?? [],
        whole: true,
      };
    case "asked":
      return body.status === "pending" ? askedOf(body) : null;
    case "decided":
      return decisionOf(body, String(body.approval));
    case "resulted":
      return resultOf({ ...body, id: String(body.call), name: String(body.tool) } as ToolCall);
    case "ended":
      return { kind, status: String(body.status), reason: String(body.reason ?? "") };
    case "failed":
      return { kind, reason: String(body.error ?? "") };
    case "erased":
      return { kind };
    default:
      return null;
  }
}

function askedOf(body: Line["body"]): AskedEntry {
  return { kind: "asked", approval: String(body.approval), path: (body.path as string[] | undefined) ?? [] };
}
