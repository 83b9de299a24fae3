import { Button } from "@mantine/core";
import { useEffect, useRef, useState, type RefObject } from "react";
import { Markdown } from "./Markdown";
import css from "./Message.module.css";

const MOST = 20_000; // characters that are shown at once
const SAYING = 8_000; // characters that are rendered anew with each piece that comes

/** What the person said, as it was typed. */
export function UserMessage({ text }: { text: string }) {
  return (
    <div className={css.said} data-said dir="auto">
      <span className={css.who}>You: </span>
      <Long text={text}>{(shown) => shown}</Long>
    </div>
  );
}

/** What the model says; rich only near the screen and while that keeps up, and never more than words. */
export function ModelMessage({ text, isWhole }: { text: string; isWhole: boolean }) {
  const [place, isNear] = useNearScreen<HTMLDivElement>();
  const isRich = isNear && (isWhole || text.length < SAYING);
  return (
    <div className={css.reply} ref={place} data-reply={isWhole ? "whole" : "saying"} dir="auto">
      <span className={css.who}>Agent: </span>
      <Long text={text}>
        {(shown) => (isRich ? <Markdown text={shown} /> : <div className={css.plain}>{shown}</div>)}
      </Long>
    </div>
  );
}

function Long({ text, children }: { text: string; children: (shown: string) => React.ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  if (text.length <= MOST || isOpen) return children(text);
  return (
    <>
      {children(text.slice(0, MOST))}
      <div>
        <Button className={css.more} variant="default" size="xs" mih={44} onClick={() => setOpen(true)}>
          Show all {text.length.toLocaleString("en")} characters
        </Button>
      </div>
    </>
  );
}

/** Whether an element came near the screen; once it did, that stays. */
export function useNearScreen<E extends Element>(): [RefObject<E | null>, boolean] {
  const place = useRef<E>(null);
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    if (isNear || !place.current) return;
    const seen = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && setNear(true),
      { root: place.current.closest("[data-scroller]"), rootMargin: "800px" },
    );
    seen.observe(place.current);
    return () => seen.disconnect();
  }, [isNear]);
  return [place, isNear];
}
