import type {
  AskedEntry,
  ChatCall,
  DecidedEntry,
  EndedEntry,
  ResultEntry,
  ThreadEntry,
  ThreadState,
} from "./threadState";

/** What stands below each other on the page. */
export type TranscriptItem = { key: string } & (
  | { kind: "said"; text: string }
  | { kind: "reply"; text: string }
  | { kind: "call"; call: ChatCall; result?: ResultEntry }
  | { kind: "card"; asked: AskedEntry; decided?: DecidedEntry }
  | { kind: "confirmation"; tool: string; message: string; would: unknown; state: "open" | "over" }
  | { kind: "end"; ended: EndedEntry; isLast: boolean }
  | { kind: "note"; text: string }
);
type CallItem = TranscriptItem & { kind: "call" };
type CardItem = TranscriptItem & { kind: "card" };
type Confirmation = TranscriptItem & { kind: "confirmation" };

/** The facts in the order of their lines: results stand with their calls, decisions with their cards. */
export function buildTranscript(facts: ThreadState["facts"]): TranscriptItem[] {
  const telling = new Telling();
  const lines = [...facts.keys()].sort((one, other) => one - other);
  lines.forEach((line, index) => telling.take(line, facts.get(line)!, index === lines.length - 1));
  return telling.items;
}

/** The cards that nobody has decided, as far as this thread was told. */
export function openCards(items: TranscriptItem[]): string[] {
  return items.flatMap((item) => (item.kind === "card" && !item.decided ? [item.asked.approval] : []));
}

class Telling {
  items: TranscriptItem[] = [];
  private calls = new Map<string, CallItem>();
  private cards = new Map<string, CardItem>();
  private question: Confirmation | null = null;

  take(line: number, fact: ThreadEntry, isLast: boolean): void {
    const key = `${fact.kind}-${line}`;
    switch (fact.kind) {
      case "said":
        this.closeQuestion();
        this.items.push({ key, kind: "said", text: fact.text });
        break;
      case "replied":
        if (fact.text) this.items.push({ key, kind: "reply", text: fact.text });
        fact.calls.forEach((call, number) => this.call(`${key}-${number}`, call));
        break;
      case "resulted":
        this.result(key, fact);
        break;
      case "asked":
        this.card(key, fact);
        break;
      case "decided":
        this.decide(fact);
        break;
      case "ended":
        this.end(key, fact, isLast);
        break;
      case "failed":
        if (isLast) this.items.push({ key, kind: "note", text: `${fact.reason} Retrying.` });
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

  private result(key: string, fact: ResultEntry): void {
    const known = this.calls.get(fact.call);
    if (known && !known.result) known.result = fact;
    else this.items.push({ key, kind: "call", call: { id: fact.call, name: fact.name }, result: fact });
    const { requires_confirmation, message, would } = (fact.result ?? {}) as Record<string, unknown>;
    if (fact.status !== "confirming" || requires_confirmation !== true) return;
    this.closeQuestion();
    const asks = { key: `confirm-${key}`, tool: fact.name, message: String(message ?? ""), would };
    this.question = { ...asks, kind: "confirmation", state: "over" };
  }

  /** It stands below what the agent says about it, at the end of the turn; only from then on it can be answered. */
  private end(key: string, ended: EndedEntry, isLast: boolean): void {
    if (this.question) {
      this.question.state = ended.status === "done" ? "open" : "over";
      this.items.push(this.question);
    }
    if (ended.status !== "done") this.items.push({ key, kind: "end", ended, isLast });
  }

  private closeQuestion(): void {
    if (this.question) this.question.state = "over";
    if (this.question && !this.items.includes(this.question)) this.items.push(this.question);
    this.question = null;
  }

  private card(key: string, asked: AskedEntry): void {
    const item: CardItem = { key, kind: "card", asked };
    this.cards.set(asked.approval, item);
    this.items.push(item);
  }

  private decide(decided: DecidedEntry): void {
    const card = this.cards.get(decided.approval);
    if (card) card.decided = decided;
  }
}
