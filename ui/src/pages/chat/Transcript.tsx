import { Alert, Button, Loader, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { lazy, memo, Suspense, useCallback, useRef } from "react";
import { callApi } from "../../api/client";
import { ErrorMessage } from "../../components/States";
import { CallLine } from "./CallLine";
import { Confirmation } from "./Confirmation";
import { ModelMessage, useNearScreen, UserMessage } from "./Message";
import type { ThreadReader, ThreadSnapshot } from "./threadReader";
import type { AskedEntry, DecidedEntry, EndedEntry } from "./threadState";
import css from "./Transcript.module.css";
import { openCards, type TranscriptItem } from "./transcriptItems";
import { useScrollPosition } from "./useScrollPosition";

const ApprovalCard = lazy(async () => ({ default: (await import("../../card/ApprovalCard")).ApprovalCard }));

interface Props {
  reader: ThreadReader;
  reading: ThreadSnapshot;
  items: TranscriptItem[];
  /** Null where one may only look. */
  onSay: ((text: string) => void) | null;
}

/** What was said and done, the newest below. It stays where one reads, and follows if one is at its end. */
export function Transcript({ reader, reading, items, onSay }: Props) {
  const { story } = reading;
  const column = useRef<HTMLDivElement>(null);
  const { scroller, onScroll, hasNews, toEnd } = useScrollPosition(column, items, reading.saidHere);
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
          aria-label="Messages"
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
          {story.draft && <ModelMessage text={story.draft.words} isWhole={false} />}
          <Working reading={reading} items={items} />
          {reading.refused && reading.thread && reading.refused.status >= 400 && (
            <ErrorMessage error={reading.refused} again={() => reader.wake()} />
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
  item: TranscriptItem;
  reader: ThreadReader;
  onSay: Props["onSay"];
  onMoved: () => void;
  isAtRest: boolean;
}

const One = memo(function One({ item, reader, onSay, onMoved, isAtRest }: OneProps) {
  switch (item.kind) {
    case "said":
      return <UserMessage text={item.text} />;
    case "reply":
      return <ModelMessage text={item.text} isWhole />;
    case "call":
      return <CallLine call={item.call} result={item.result} />;
    case "card":
      return <CardItem asked={item.asked} decided={item.decided} onMoved={onMoved} />;
    case "confirmation":
      return <Confirmation question={item} onSay={isAtRest ? onSay : null} />;
    case "end":
      return <TurnEnd ended={item.ended} reader={item.isLast && isAtRest && onSay ? reader : null} />;
    case "note":
      return <LogNote text={item.text} />;
  }
}, isSame);

/** Items are told anew with every fact; most of them are as before. */
function isSame(before: OneProps, now: OneProps): boolean {
  const { item: one, ...others } = before;
  const { item: other, ...rest } = now;
  const keys = Object.keys({ ...one, ...other }) as (keyof TranscriptItem)[];
  return (
    keys.every((key) => one[key] === other[key]) &&
    (Object.keys(others) as (keyof typeof others)[]).every((key) => others[key] === rest[key])
  );
}

function Working({
  reading: { story, thread },
  items,
}: {
  reading: ThreadSnapshot;
  items: TranscriptItem[];
}) {
  if (story.status === "idle" || story.draft || !thread) return null;
  const cards = openCards(items).length;
  if (cards > 0)
    return (
      <div className={css.working}>
        {cards === 1 ? "1 request needs a decision." : `${cards} requests need a decision.`}
      </div>
    );
  return (
    <div className={css.working}>
      <Loader size="xs" type="dots" aria-hidden /> Working
    </div>
  );
}

function Earlier({ reader }: { reader: ThreadReader }) {
  const load = useMutation({ mutationFn: () => reader.earlier() });
  return (
    <>
      {load.error && <ErrorMessage error={load.error} />}
      <Button variant="subtle" mih={44} loading={load.isPending} onClick={() => load.mutate()}>
        Show earlier messages
      </Button>
    </>
  );
}

/** A request of this thread or of a sub-agent's; far from the screen it is only a line. */
function CardItem({
  asked,
  decided,
  onMoved,
}: {
  asked: AskedEntry;
  decided?: DecidedEntry;
  onMoved: () => void;
}) {
  const [place, isNear] = useNearScreen<HTMLDivElement>();
  const line = <Text size="sm">A request{decided ? `, ${decided.status}` : ""}</Text>;
  return (
    <div ref={place} data-card={asked.approval}>
      {asked.path.length > 1 && (
        <Text size="sm" mb={4}>
          Requested by {asked.path.join(" › ")}
        </Text>
      )}
      {isNear ? (
        <Suspense fallback={line}>
          <ApprovalCard id={asked.approval} place="chat" initial={asked.shown} onMoved={onMoved} />
        </Suspense>
      ) : (
        line
      )}
    </div>
  );
}

/** A turn that did not come to its end, and the way on where there is one. */
function TurnEnd({ ended, reader }: { ended: EndedEntry; reader: ThreadReader | null }) {
  if (ended.status === "stopped") return <LogNote text="Stopped." />;
  return (
    <Alert color="red" title={ended.status === "limit" ? "Limit reached" : "The agent could not continue"}>
      <Text size="sm">{ended.reason}</Text>
      {reader && ended.status !== "limit" && <Retry reader={reader} />}
    </Alert>
  );
}

function LogNote({ text }: { text: string }) {
  return (
    <Text size="sm" fs="italic">
      {text}
    </Text>
  );
}

/** From where the thread stands: nothing that was recorded is done again. */
function Retry({ reader }: { reader: ThreadReader }) {
  const retry = useMutation({
    mutationFn: () =>
      callApi("post", "/api/threads/{thread_id}/retry", { path: { thread_id: reader.id }, body: {} }),
    onSuccess: () => reader.works(),
    onError: () => reader.wake(),
  });
  return (
    <>
      {retry.error && (
        <Text size="sm" role="alert">
          {retry.error.message}
        </Text>
      )}
      <Button mt="xs" mih={44} variant="default" loading={retry.isPending} onClick={() => retry.mutate()}>
        Retry
      </Button>
    </>
  );
}
