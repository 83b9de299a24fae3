import { useVirtualizer } from "@tanstack/react-virtual";
import {
  useCallback,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  useState,
  type Ref,
} from "react";
import { useMe } from "../../api/currentUser";
import { useTick } from "../../components/TimeAgo";
import type { Feed } from "./feed";
import css from "./Inbox.module.css";
import { InboxRow, ROW_HEIGHT, type InboxRowProps } from "./InboxRow";
import * as messages from "./messages";

export interface InboxListHandle {
  /** Scrolls to a row and focuses it. */
  goTo: (id: string) => void;
  /** Scrolls to a row; the focus stays where it is. */
  show: (id: string) => void;
}

interface Props extends Pick<InboxRowProps, "onToggle" | "onOpen"> {
  feed: Feed;
  current: string;
  selected: ReadonlySet<string>;
  onNearEnd: () => void;
  /** The visible rows. */
  onVisible: (ids: readonly string[]) => void;
  ref: Ref<InboxListHandle>;
}

const PREFETCH_ROWS = 40; // rows before the end at which the next page is fetched

/** Renders only the visible rows and a few around them. */
export function InboxList({ feed, current, selected, onNearEnd, onVisible, onToggle, onOpen, ref }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const [pendingFocus, setPendingFocus] = useState("");
  const { ids, rows } = feed;
  const now = useTick();
  const me = useMe().data?.name ?? "";
  const virtual = useVirtualizer({
    count: ids.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    getItemKey: useCallback((index: number) => ids[index] ?? index, [ids]), // a new function would recompute every row
    overscan: 6,
    scrollPaddingEnd: ROW_HEIGHT, // a toast may cover the last row
  });
  const shown = virtual.getVirtualItems();
  const first = shown[0]?.index ?? 0;
  const last = shown.at(-1)?.index ?? 0;

  useEffect(() => {
    if (feed.next !== null && last >= ids.length - PREFETCH_ROWS) onNearEnd();
  }, [feed.next, ids.length, last, onNearEnd]);
  useEffect(() => onVisible(ids.slice(first, last + 1)), [ids, first, last, onVisible]);
  const show = (id: string) => {
    const index = ids.indexOf(id);
    if (index >= 0) virtual.scrollToIndex(index, { align: "auto" });
    return index >= 0;
  };
  useImperativeHandle(ref, () => ({
    goTo: (id) => show(id) && setPendingFocus(id),
    show: (id) => void show(id),
  }));
  // eslint-disable-next-line react-hooks/exhaustive-deps -- after every render until the row is there, and then it ends
  useLayoutEffect(() => {
    const found =
      pendingFocus &&
      scroller.current?.querySelector<HTMLElement>(`[data-row="${CSS.escape(pendingFocus)}"] a`);
    if (!found) return;
    found.focus({ preventScroll: true });
    setPendingFocus("");
  });

  return (
    <div
      ref={scroller}
      className={css.scroller}
      data-rows={ids.length}
      data-selecting={selected.size > 0 || undefined}
    >
      <ul className={css.rows} style={{ height: virtual.getTotalSize() }} aria-label={messages.requests}>
        {shown.map(({ index, start }) => {
          const row = rows.get(ids[index] ?? "");
          if (!row) return null;
          const state = { current: row.id === current, isSelected: selected.has(row.id) };
          return (
            <InboxRow
              key={row.id}
              row={row}
              me={me}
              now={now}
              top={start}
              position={index + 1}
              {...state}
              onToggle={onToggle}
              onOpen={onOpen}
            />
          );
        })}
      </ul>
    </div>
  );
}
