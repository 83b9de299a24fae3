import { Button, Loader } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { memo, useCallback, useRef } from "react";
import { Problem } from "../../components/States";
import { CallLine } from "./CallLine";
import { CardItem } from "./CardItem";
import { Confirmation } from "./Confirmation";
import { Ending, Note } from "./Ending";
import css from "./Log.module.css";
import { Reply, Said } from "./Message";
import type { Reader, Reading } from "./reader";
import { openCards, type Item } from "./tell";
import { useStaying } from "./useStaying";

interface Props {
  reader: Reader;
  reading: Reading;
  items: Item[];
  /** Null where one may only look. */
  onSay: ((text: string) => void) | null;
}

/** What was said and done, the newest below. It stays where one reads, and follows if one is at its end. */
export function Log({ reader, reading, items, onSay }: Props) {
  const { story } = reading;
  const column = useRef<HTMLDivElement>(null);
  const { scroller, onScroll, hasNews, toEnd } = useStaying(column, items, reading.saidHere);
  const open = openCards(items).length;
  const onMoved = useCallback(() => {
    reader.wake();
    if (open <= 1) toEnd(); // what comes of it comes below
  }, [reader, open, toEnd]);
  return (
    <div className={css.frame}>
      <div className={css.scroller} data-scroller ref={scroller} onScroll={onScroll}>
        <div
          className={css.column}
          ref={column}
          role="log"
          aria-live="off"
          aria-label="What was said"
          tabIndex={0}
        >
          {reading.hasEarlier && <Earlier reader={reader} />}
          {items.map((item) => (
            <div key={item.key} className={item.kind === "card" ? `${css.item} ${css.card}` : css.item}>
              <One
                item={item}
                reader={reader}
                onSay={onSay}
                onMoved={onMoved}
                isAtRest={story.status === "idle"}
              />
            </div>
          ))}
          {story.draft && <Reply text={story.draft.words} isWhole={false} />}
          <Working reading={reading} items={items} />
          {reading.refused && reading.thread && reading.refused.status >= 400 && (
            <Problem error={reading.refused} again={() => reader.wake()} />
          )}
        </div>
      </div>
      {hasNews && (
        <Button className={css.newer} size="sm" mih={44} onClick={toEnd}>
          New messages
        </Button>
      )}
    </div>
  );
}

interface OneProps {
  item: Item;
  reader: Reader;
  onSay: Props["onSay"];
  onMoved: () => void;
  isAtRest: boolean;
}

const One = memo(function One({ item, reader, onSay, onMoved, isAtRest }: OneProps) {
  switch (item.kind) {
    case "said":
      return <Said text={item.text} />;
    case "reply":
      return <Reply text={item.text} isWhole />;
    case "call":
      return <CallLine call={item.call} result={item.result} />;
    case "card":
      return <CardItem asked={item.asked} decided={item.decided} onMoved={onMoved} />;
    case "confirmation":
      return <Confirmation question={item} onSay={isAtRest ? onSay : null} />;
    case "end":
      return <Ending ended={item.ended} reader={item.isLast && isAtRest && onSay ? reader : null} />;
    case "note":
      return <Note text={item.text} />;
  }
}, isSame);

/** Items are told anew with every fact; most of them are as before. */
function isSame(before: OneProps, now: OneProps): boolean {
  const { item: one, ...others } = before;
  const { item: other, ...rest } = now;
  const keys = Object.keys({ ...one, ...other }) as (keyof Item)[];
  return (
    keys.every((key) => one[key] === other[key]) &&
    (Object.keys(others) as (keyof typeof others)[]).every((key) => others[key] === rest[key])
  );
}

function Working({ reading: { story, thread }, items }: { reading: Reading; items: Item[] }) {
  if (story.status === "idle" || story.draft || !thread) return null;
  const cards = openCards(items).length;
  if (cards > 0)
    return (
      <div className={css.working}>
        {cards === 1 ? "Waits for a decision." : `Waits for ${cards} decisions.`}
      </div>
    );
  return (
    <div className={css.working}>
      <Loader size="xs" type="dots" aria-hidden /> At work
    </div>
  );
}

function Earlier({ reader }: { reader: Reader }) {
  const load = useMutation({ mutationFn: () => reader.earlier() });
  return (
    <>
      {load.error && <Problem error={load.error} />}
      <Button variant="subtle" mih={44} loading={load.isPending} onClick={() => load.mutate()}>
        Show earlier messages
      </Button>
    </>
  );
}
