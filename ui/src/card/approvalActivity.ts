import type { ApprovalSnapshot } from "../api/approvals";
import { escapeInvisible } from "../components/escapeInvisible";
import * as messages from "./messages";
import { isPlainQuestion } from "./Risk";

type Entry = ApprovalSnapshot["timeline"][number];

/** What happened to a call, or what people and the agent said about it. */
export interface ActivityItem {
  seq: number;
  at: string;
  actor: string;
  text: string;
  /** The text of a question or of a note. */
  quote?: string;
  /** The agent's words, or that there are none yet. */
  reply?: string;
  kind: "event" | "question" | "remark";
}

const DELIVERED = new Set(["delivered", "delivery_parked", "delivery_again"]);

/** Newest first. Questions and notes have their text; several notifications in a row are one. */
export function listActivity(approval: ApprovalSnapshot, me: string): ActivityItem[] {
  const items: ActivityItem[] = [];
  for (const entry of approval.timeline) {
    if (entry.kind === "replied") continue; // stands at its question
    const item = toItem(entry, approval, me);
    if (DELIVERED.has(entry.kind) && isDelivery(items.at(-1))) items[items.length - 1] = item;
    else items.push(item);
  }
  return items.reverse();
}

const isDelivery = (item: ActivityItem | undefined) => item?.text === messages.NOTIFIED;

function toItem(entry: Entry, approval: ApprovalSnapshot, me: string): ActivityItem {
  const { seq, at, kind } = entry;
  const item = { seq, at, actor: nameOf(entry.actor, me), kind: "event" as const };
  if (DELIVERED.has(kind)) return { ...item, text: messages.NOTIFIED };
  if (kind === "commented")
    return { ...item, kind: "remark", text: messages.noted, quote: textOf(entry.content?.text) };
  const question = kind === "asked" && approval.questions.find(({ number }) => number === entry.data.number);
  if (question)
    return {
      ...item,
      kind: "question",
      text: messages.askedFact,
      quote: question.text ?? "erased",
      reply: question.reply ? (question.reply.text ?? "erased") : undefined,
    };
  if (kind === "proposed" && isPlainQuestion(approval)) return { ...item, text: messages.askedFact };
  return { ...item, text: `${messages.ACTIONS[kind] ?? kind.replaceAll("_", " ")}${delegates(entry)}` };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "erased";
}

function delegates({ kind, content }: Entry): string {
  if (kind !== "delegated" && kind !== "escalated") return "";
  const to = content?.to as { users?: string[]; teams?: string[] } | undefined;
  const names = [...(to?.users ?? []), ...(to?.teams ?? []).map((name) => messages.teamName(name))];
  return names.length ? messages.toNames(names.map(escapeInvisible).join(", ")) : "";
}

/** A person is called by name, oneself "You". */
export function nameOf(actor: string, me: string): string {
  if (me && actor === me) return messages.you;
  if (actor === "interlock") return messages.interlock;
  if (actor === "policy") return messages.thePolicy;
  if (actor === "agent") return messages.theAgent;
  return escapeInvisible(actor.replace(/^agent:/, ""));
}
