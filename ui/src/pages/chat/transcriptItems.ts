import type {
  AskedEntry,
  ChatCall,
  DecidedEntry,
  EndedEntry,
  ResultEntry,
  SaidEntry,
  ThreadEntry,
} from "./threadEntries";
import type { ThreadState } from "./threadState";

export type ConfirmationAnswer = "yes" | "no";

/** An item of the transcript. */
export type TranscriptItem = { key: string } & (
  | { kind: "said"; text: string }
  | { kind: "reply"; text: string }
  | { kind: "call"; call: ChatCall; result?: ResultEntry }
  | { kind: "card"; asked: AskedEntry; decided?: DecidedEntry }
  | {
      kind: "confirmation";
      tool: string;
      message: string;
      would: unknown;
      state: "open" | "over";
      answer?: ConfirmationAnswer;
    }
  | { kind: "end"; ended: EndedEntry; isLast: boolean }
  | { kind: "suggestions"; phrases: string[] }
  | { kind: "note"; text: string }
);
type CallItem = TranscriptItem & { kind: "call" };
type CardItem = TranscriptItem & { kind: "card" };
type Confirmation = TranscriptItem & { kind: "confirmation" };

/** The entries in order: results with their calls, decisions with their cards. */
export function buildTranscript(entries: ThreadState["entries"]): TranscriptItem[] {
  const builder = new TranscriptBuilder();
  const lines = [...entries.keys()].sort((one, other) => one - other);
  lines.forEach((line, index) => builder.add(line, entries.get(line)!, index === lines.length - 1));
  return builder.items;
}

/** The cards without a decision in this thread. */
export function openCards(items: TranscriptItem[]): string[] {
  return items.flatMap((item) => (item.kind === "card" && !item.decided ? [item.asked.approval] : []));
}

/** Whether the agent waits for a rejection that can still be undone. */
export function hasUndoableRejection(items: TranscriptItem[]): boolean {
  return items.some((item) => item.kind === "card" && item.decided?.isUndoable);
}

class TranscriptBuilder {
  items: TranscriptItem[] = [];
  private calls = new Map<string, CallItem>();
  private cards = new Map<string, CardItem>();
  private question: Confirmation | null = null;

  add(line: number, entry: ThreadEntry, isLast: boolean): void {
    const key = `${entry.kind}-${line}`;
    switch (entry.kind) {
      case "said":
        this.closeQuestion(entry);
        this.items.push({ key, kind: "said", text: entry.text });
        break;
      case "replied":
        if (entry.text) this.items.push({ key, kind: "reply", text: entry.text });
        entry.calls.forEach((call, number) => this.call(`${key}-${number}`, call));
        break;
      case "resulted":
        this.result(key, entry);
        break;
      case "asked":
        this.card(key, entry);
        break;
      case "decided":
        this.decide(entry);
        break;
      case "ended":
        this.end(key, entry, isLast);
        break;
      case "failed":
        if (isLast) this.items.push({ key, kind: "note", text: `${entry.reason} Retrying.` });
        break;
      case "erased":
        this.items.push({ key, kind: "note", text: "These messages were erased." });
    }
  }

  private call(key: string, call: ChatCall): void {
    const item: CallItem = { key, kind: "call", call };
    this.calls.set(call.id, item);
    this.items.push(item);
  }

  private result(key: string, entry: ResultEntry): void {
    const known = this.calls.get(entry.call);
    if (known && !known.result) known.result = entry;
    else this.items.push({ key, kind: "call", call: { id: entry.call, name: entry.name }, result: entry });
    const { requires_confirmation, message, would } = (entry.result ?? {}) as Record<string, unknown>;
    if (entry.status !== "confirming" || requires_confirmation !== true) return;
    this.closeQuestion();
    const fields = { key: `confirm-${key}`, tool: entry.name, message: String(message ?? ""), would };
    this.question = { ...fields, kind: "confirmation", state: "over" };
  }

  /** Placed after the agent's reply at the end of the turn; only then can it be answered. */
  private end(key: string, ended: EndedEntry, isLast: boolean): void {
    if (this.question) {
      this.question.state = ended.status === "done" ? "open" : "over";
      this.items.push(this.question);
    }
    if (ended.status !== "done") this.items.push({ key, kind: "end", ended, isLast });
    else if (isLast && ended.suggestions.length)
      this.items.push({ key, kind: "suggestions", phrases: ended.suggestions });
  }

  private closeQuestion(said?: SaidEntry): void {
    if (this.question?.state === "open" && said) this.question.answer = readAnswer(said);
    if (this.question) this.question.state = "over";
    if (this.question && !this.items.includes(this.question)) this.items.push(this.question);
    this.question = null;
  }

  /** A rejection that was undone opens its card again, in its place. */
  private card(key: string, asked: AskedEntry): void {
    const known = this.cards.get(asked.approval);
    if (known) {
      known.decided = undefined;
      return;
    }
    const item: CardItem = { key, kind: "card", asked };
    this.cards.set(asked.approval, item);
    this.items.push(item);
  }

  private decide(decided: DecidedEntry): void {
    const card = this.cards.get(decided.approval);
    if (card) card.decided = decided;
  }
}

/**
 * The answers of the buttons, also if they were typed. The server understands more words, but does not tell how it
 * understood them; nor does a message from a client that does not show the question answer it.
 */
function readAnswer({ text, via }: SaidEntry): ConfirmationAnswer | undefined {
  const word = text
    .replace(/[\s.!,]+/g, " ")
    .trim()
    .toLowerCase();
  return !via && (word === "yes" || word === "no") ? word : undefined;
}
