import { Alert, Button, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { memo, useCallback, useRef } from "react";
import { callApi } from "../../api/client";
import { useMe } from "../../api/currentUser";
import { ErrorMessage } from "../../components/States";
import { CallLine } from "./CallLine";
import { Confirmation } from "./Confirmation";
import { PhraseButtons } from "./PhraseButtons";
import { AgentAside, ModelMessage, UserMessage } from "./Message";
import { RequestItem } from "./RequestItem";
import type { ThreadReader, ThreadSnapshot } from "./threadReader";
import type { EndedEntry } from "./threadEntries";
import css from "./Transcript.module.css";
import { hasUndoableRejection, isAskingToConfirm, openCards, type TranscriptItem } from "./transcriptItems";
import * as messages from "./transcriptMessages";
import { useScrollPosition } from "./useScrollPosition";
import { useShiftGuard } from "./useShiftGuard";

interface Props {
  reader: ThreadReader;
  snapshot: ThreadSnapshot;
  items: TranscriptItem[];
  /** Null if the thread is read-only. */
  onSend: ((text: string) => void) | null;
}

/** Messages and calls, newest last. It follows the end up to the first open request, and keeps the position elsewhere. */
export function Transcript({ reader, snapshot, items, onSend }: Props) {
  const { state } = snapshot;
  const column = useRef<HTMLDivElement>(null);
  const { scroller, onScroll, hasNewItems, follow } = useScrollPosition(column, items, snapshot.sentHere);
  const me = useMe().data?.name;
  const owner = snapshot.thread?.user ?? "";
  const guard = useShiftGuard();
  const onChanged = useCallback(() => {
    reader.wake();
    follow(); // to the next open request, or to the result below
  }, [reader, follow]);
  return (
    <div
      className={css.frame}
      data-shifting={guard.isShifting || undefined}
      onPointerDownCapture={guard.hold}
      onClickCapture={guard.hold}
      onKeyDownCapture={guard.hold}
    >
      <div className={css.scroller} data-scroller ref={scroller} onScroll={onScroll}>
        <div
          className={css.column}
          ref={column}
          role="log"
          aria-live="off"
          aria-label={messages.messages}
          tabIndex={0}
        >
          {snapshot.hasEarlier && <EarlierButton reader={reader} />}
          {items.map((item) => (
            <div key={item.key} className={isTall(item) ? `${css.item} ${css.card}` : css.item}>
              <Item
                item={item}
                reader={reader}
                person={owner === me ? messages.you : owner}
                onSend={onSend}
                onChanged={onChanged}
                onShrunk={guard.start}
                isIdle={state.status === "idle"}
              />
            </div>
          ))}
          {state.draft && !isAskingToConfirm(items) && (
            <ModelMessage text={state.draft.text} isComplete={false} />
          )}
          <WorkingIndicator snapshot={snapshot} items={items} />
          {snapshot.refused && snapshot.thread && snapshot.refused.status >= 400 && (
            <ErrorMessage error={snapshot.refused} onRetry={() => reader.wake()} />
          )}
        </div>
      </div>
      <div className={css.early} role="status">
        {guard.isEarly && messages.oneMoment}
      </div>
      {hasNewItems && (
        <Button className={css.newer} size="sm" mih={44} onClick={follow}>
          {messages.newMessages}
        </Button>
      )}
    </div>
  );
}

const isTall = (item: TranscriptItem) => item.kind === "card" && !item.decided;

interface ItemProps {
  item: TranscriptItem;
  reader: ThreadReader;
  /** The thread's owner; "You" for the reader. */
  person: string;
  onSend: Props["onSend"];
  onChanged: () => void;
  onShrunk: () => void;
  isIdle: boolean;
}

const Item = memo(function Item({ item, reader, person, onSend, onChanged, onShrunk, isIdle }: ItemProps) {
  switch (item.kind) {
    case "said":
      return <UserMessage text={item.text} />;
    case "reply":
      return item.isAside ? <AgentAside text={item.text} /> : <ModelMessage text={item.text} isComplete />;
    case "call":
      return <CallLine call={item.call} result={item.result} />;
    case "card":
      return <RequestItem item={item} onChanged={onChanged} onShrunk={onShrunk} />;
    case "confirmation":
      return <Confirmation question={item} person={person} onSend={isIdle ? onSend : null} />;
    case "end":
      return <TurnEnd ended={item.ended} reader={item.isLast && isIdle && onSend ? reader : null} />;
    case "suggestions":
      return onSend && <PhraseButtons label={messages.suggestions} phrases={item.phrases} onSend={onSend} />;
    case "note":
      return <LogNote text={item.text} />;
  }
}, isUnchanged);

/** Items are rebuilt for every entry; most of them are unchanged. */
function isUnchanged(before: ItemProps, now: ItemProps): boolean {
  const { item: one, ...others } = before;
  const { item: other, ...rest } = now;
  const keys = Object.keys({ ...one, ...other }) as (keyof TranscriptItem)[];
  return (
    keys.every((key) => one[key] === other[key]) &&
    (Object.keys(others) as (keyof typeof others)[]).every((key) => others[key] === rest[key])
  );
}

function WorkingIndicator({
  snapshot: { state, thread },
  items,
}: {
  snapshot: ThreadSnapshot;
  items: TranscriptItem[];
}) {
  if (state.status === "idle" || !thread || (state.draft && !isAskingToConfirm(items))) return null;
  const open = openCards(items).length;
  if (open > 0) return <div className={css.working}>{messages.requestsNeedDecision(open)}</div>;
  if (hasUndoableRejection(items)) return <div className={css.working}>{messages.rejectionIsToldLater}</div>;
  return (
    <div className={css.working}>
      <span className={css.spinner} /> {messages.working}
    </div>
  );
}

function EarlierButton({ reader }: { reader: ThreadReader }) {
  const load = useMutation({ mutationFn: () => reader.loadEarlier() });
  return (
    <>
      {load.error && <ErrorMessage error={load.error} />}
      <Button variant="subtle" mih={44} loading={load.isPending} onClick={() => load.mutate()}>
        {messages.showEarlierMessages}
      </Button>
    </>
  );
}

/** A turn that ended early, with a retry button if possible. */
function TurnEnd({ ended, reader }: { ended: EndedEntry; reader: ThreadReader | null }) {
  if (ended.status === "stopped") return <LogNote text={messages.stopped} />;
  return (
    <Alert
      color="red"
      title={ended.status === "limit" ? messages.limitReached : messages.agentCouldNotContinue}
    >
      <Text size="sm">{ended.reason}</Text>
      {reader && ended.status !== "limit" && <RetryButton reader={reader} />}
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

/** Continues from the recorded state: nothing is repeated. */
function RetryButton({ reader }: { reader: ThreadReader }) {
  const retry = useMutation({
    mutationFn: () =>
      callApi("post", "/api/threads/{thread_id}/retry", { path: { thread_id: reader.id }, body: {} }),
    onSuccess: () => reader.markWorking(),
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
        {messages.retry}
      </Button>
    </>
  );
}
