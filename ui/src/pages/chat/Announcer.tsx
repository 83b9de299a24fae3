import { useEffect, useRef, useState } from "react";
import css from "./Message.module.css";
import type { ThreadState } from "./threadState";
import type { TranscriptItem } from "./transcriptItems";

const MOST = 600; // a screen reader reads on in the log itself

/** Says what is finished, once and politely; the log itself keeps quiet while words come. */
export function Announcer({ items, status }: { items: TranscriptItem[]; status: ThreadState["status"] }) {
  const [said, setSaid] = useState("");
  const known = useRef<Set<string> | null>(null);
  useEffect(() => {
    if (items.length === 0) return;
    const before = known.current;
    known.current = new Set(items.map((item) => item.key));
    const fresh = before ? items.filter((item) => !before.has(item.key)).map(wordsOf) : [];
    const words = fresh.filter(Boolean).join(" ");
    if (words) setSaid(words.slice(0, MOST));
  }, [items, status]);
  return (
    <div className={css.who} role="status" aria-live="polite">
      {said}
    </div>
  );
}

function wordsOf(item: TranscriptItem): string {
  switch (item.kind) {
    case "reply":
      return `Agent: ${item.text}`;
    case "card":
      return "A request needs a decision.";
    case "confirmation":
      return `Question: ${item.message}`;
    case "end":
      return item.ended.status === "stopped" ? "Stopped." : `Error: ${item.ended.reason}`;
    default:
      return "";
  }
}
