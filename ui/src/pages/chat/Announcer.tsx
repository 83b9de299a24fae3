import { useEffect, useRef, useState } from "react";
import css from "./Message.module.css";
import * as messages from "./messages";
import type { ThreadState } from "./threadState";
import type { TranscriptItem } from "./transcriptItems";

const MAX_LENGTH = 600; // the rest is in the log itself

/** Announces finished items once; the log itself is silent while text streams in. */
export function Announcer({ items, status }: { items: TranscriptItem[]; status: ThreadState["status"] }) {
  const [announcement, setAnnouncement] = useState("");
  const knownKeys = useRef<Set<string> | null>(null);
  useEffect(() => {
    if (items.length === 0) return;
    const previousKeys = knownKeys.current;
    knownKeys.current = new Set(items.map((item) => item.key));
    const fresh = previousKeys
      ? items.filter((item) => !previousKeys.has(item.key)).map(announcementFor)
      : [];
    const text = fresh.filter(Boolean).join(" ");
    if (text) setAnnouncement(text.slice(0, MAX_LENGTH));
  }, [items, status]);
  return (
    <div className={css.who} role="status" aria-live="polite">
      {announcement}
    </div>
  );
}

function announcementFor(item: TranscriptItem): string {
  switch (item.kind) {
    case "reply":
      return item.isAside ? "" : messages.agentSaid(item.text);
    case "card":
      return messages.requestNeedsDecision;
    case "confirmation":
      return messages.questionAsked(item.message);
    case "end":
      return item.ended.status === "stopped" ? messages.stopped : messages.errorWithReason(item.ended.reason);
    default:
      return "";
  }
}
