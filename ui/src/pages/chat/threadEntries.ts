import type { ApprovalJson } from "../../api/approvals";
import type { Schemas } from "../../api/client";

export type ThreadDetails = Schemas["ThreadDetails"];
export type Line = Schemas["ThreadLine"];

export interface ChatCall {
  id: string;
  name: string;
  args?: unknown;
}

export interface SaidEntry {
  kind: "said";
  text: string;
  /** The client that sent it; empty for this page. */
  via: string;
}
export interface RepliedEntry {
  kind: "replied";
  text: string;
  calls: ChatCall[];
  /** Read from the thread's log, not assembled from its stream. */
  isComplete: boolean;
}
export interface AskedEntry {
  kind: "asked";
  approval: string;
  /** The call of this thread that it is about; empty for one of a sub-agent. */
  call: string;
  tool: string;
  path: string[];
  shown?: ApprovalJson & { read_at: number };
}
export interface DecidedEntry {
  kind: "decided";
  approval: string;
  status: string;
  reason: string;
  isUndoable: boolean; // a rejection that is not released to the agent yet
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
  /** Messages that the user could send next. */
  suggestions: string[];
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

export interface ToolCall extends ChatCall {
  result: unknown;
  status?: string;
}

export function toResultEntry({ id, name, result, status = "" }: ToolCall): ResultEntry {
  return { kind: "resulted", call: id, name, result, status };
}

export function toDecidedEntry(data: Record<string, unknown>, approval: string): DecidedEntry {
  const reason = String(data.reason ?? "");
  return { kind: "decided", approval, status: String(data.status), reason, isUndoable: "release_at" in data };
}

/** The entry of a line in the log; null if it is not shown. */
export function toEntry({ kind, body }: Line): ThreadEntry | null {
  switch (kind) {
    case "said":
      return { kind, text: String(body.text), via: String(body.via ?? "") };
    case "replied":
      return {
        kind,
        text: String(body.text),
        calls: (body.calls as ChatCall[] | undefined) ?? [],
        isComplete: true,
      };
    case "asked":
      return body.status === "pending" ? toAskedEntry(body) : null;
    case "decided":
      return toDecidedEntry(body, String(body.approval));
    case "resulted":
      return toResultEntry({ ...body, id: String(body.call), name: String(body.tool) } as ToolCall);
    case "ended":
      return {
        kind,
        status: String(body.status),
        reason: String(body.reason ?? ""),
        suggestions: toSuggestions(body),
      };
    case "failed":
      return { kind, reason: String(body.error ?? "") };
    case "erased":
      return { kind };
    default:
      return null;
  }
}

function toAskedEntry(body: Line["body"]): AskedEntry {
  return {
    kind: "asked",
    approval: String(body.approval),
    call: "child" in body ? "" : String(body.call ?? ""),
    tool: String(body.tool ?? ""),
    path: (body.path as string[] | undefined) ?? [],
  };
}

/** The same from the stream, where a call has the number of its reply before its id. */
export function toAskedEntryOf(shown: NonNullable<AskedEntry["shown"]>, path: string[]): AskedEntry {
  const call = path.length > 1 ? "" : shown.call_id.slice(shown.call_id.indexOf(":") + 1);
  return { kind: "asked", approval: shown.id, call, tool: shown.tool, path, shown };
}

export function toSuggestions({ suggestions }: Record<string, unknown>): string[] {
  return Array.isArray(suggestions) ? suggestions.map(String) : [];
}
