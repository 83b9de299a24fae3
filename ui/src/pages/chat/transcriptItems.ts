import * as messages from "./messages";
import type {
  AskedEntry,
  ChatCall,
  DecidedEntry,
  EndedEntry,
  RepliedEntry,
  ResultEntry,
  SaidEntry,
  ThreadEntry,
} from "./threadEntries";
import type { ThreadState } from "./threadState";

export type ConfirmationAnswer = "yes" | "no";

/** An item of the transcript. */
export type TranscriptItem = { key: string } & (
  | { kind: "said"; text: string }
  | { kind: "reply"; text: string; isAside: boolean }
  | { kind: "call"; call: ChatCall; result?: ResultEntry }
  | { kind: "card"; asked: AskedEntry; decided?: DecidedEntry; call?: ChatCall; result?: ResultEntry }
  | {
      kind: "confirmation";
      tool: string;
      message: string;
      would: unknown;
      /** As on a card; "high" in threads from before the server said it. */
      risk: string;
      effect: string;
      /** "asked" until the turn is over: only then can it be answered. */
      state: "asked" | "open" | "over";
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

/** The requests without a decision in this thread. */
export function openCards(items: TranscriptItem[]): OpenRequest[] {
  return items.flatMap((item) =>
    item.kind === "card" && !item.decided ? [{ approval: item.asked.approval, tool: item.asked.tool }] : [],
  );
}

export interface OpenRequest {
  approval: string;
  tool: string;
}

/** Whether the reply that comes now only repeats the question of a confirmation, which is shown already. */
export function isAskingToConfirm(items: TranscriptItem[]): boolean {
  return items.some((item) => item.kind === "confirmation" && item.state === "asked");
}

/** Whether the agent waits for a rejection that can still be undone. */
export function hasUndoableRejection(items: TranscriptItem[]): boolean {
  return items.some((item) => item.kind === "card" && item.decided?.isUndoable);
}

class TranscriptBuilder {
  items: TranscriptItem[] = [];
  private calls = new Map<string, CallItem | CardItem>();
  private cards = new Map<string, CardItem>();
  private question: Confirmation | null = null;
  private sinceReply = { results: 0, questions: 0 };

  add(line: number, entry: ThreadEntry, isLast: boolean): void {
    const key = `${entry.kind}-${line}`;
    switch (entry.kind) {
      case "said":
        this.closeQuestion(entry);
        this.items.push({ key, kind: "said", text: entry.text });
        break;
      case "replied":
        this.reply(key, entry);
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
        if (isLast) this.items.push({ key, kind: "note", text: messages.retryingAfter(entry.reason) });
        break;
      case "erased":
        this.items.push({ key, kind: "note", text: messages.theseMessagesWereErased });
    }
  }

  /** A reply to nothing but a confirmation's question is the agent's version of that question. */
  private reply(key: string, { text, calls }: RepliedEntry): void {
    const { results, questions } = this.sinceReply;
    const isAside = questions > 0 && questions === results && calls.length === 0;
    if (text) this.items.push({ key, kind: "reply", text, isAside });
    calls.forEach((call, number) => this.call(`${key}-${number}`, call));
    this.sinceReply = { results: 0, questions: 0 };
  }

  private call(key: string, call: ChatCall): void {
    const item: CallItem = { key, kind: "call", call };
    this.calls.set(call.id, item);
    this.items.push(item);
  }

  private result(key: string, entry: ResultEntry): void {
    this.sinceReply.results++;
    const known = this.calls.get(entry.call);
    const { requires_confirmation, ...asked } = (entry.result ?? {}) as Record<string, unknown>;
    if (entry.status === "confirming" && requires_confirmation === true) {
      this.sinceReply.questions++;
      this.closeQuestion();
      const { message = "", would, risk = "high", effect = "" } = asked;
      const texts = { message: String(message), risk: String(risk), effect: String(effect) };
      const fields = { tool: entry.name, would, ...texts };
      this.question = { key: `confirm-${key}`, kind: "confirmation", state: "asked", ...fields };
      this.replace(known, this.question);
    } else if (known && !known.result) known.result = entry;
    else this.items.push({ key, kind: "call", call: { id: entry.call, name: entry.name }, result: entry });
  }

  /** What is shown in place of a call's line; at the end, if that is not loaded. */
  private replace(known: TranscriptItem | undefined, item: TranscriptItem): void {
    const at = known ? this.items.indexOf(known) : -1;
    if (at < 0) this.items.push(item);
    else this.items[at] = item;
  }

  private end(key: string, ended: EndedEntry, isLast: boolean): void {
    if (this.question) this.question.state = ended.status === "done" ? "open" : "over";
    if (ended.status !== "done") this.items.push({ key, kind: "end", ended, isLast });
    else if (isLast && ended.suggestions.length)
      this.items.push({ key, kind: "suggestions", phrases: ended.suggestions });
  }

  private closeQuestion(said?: SaidEntry): void {
    if (this.question?.state === "open" && said) this.question.answer = readAnswer(said);
    if (this.question) this.question.state = "over";
    this.question = null;
  }

  /** A rejection that was undone opens its card again, in its place. */
  private card(key: string, asked: AskedEntry): void {
    const known = this.cards.get(asked.approval);
    if (known) {
      known.decided = undefined;
      return;
    }
    const call = asked.call ? this.calls.get(asked.call) : undefined;
    const item: CardItem = { key, kind: "card", asked, call: call?.call, result: call?.result };
    this.cards.set(asked.approval, item);
    this.replace(call, item);
    if (call) this.calls.set(asked.call, item);
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
