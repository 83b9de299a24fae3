import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import { Link } from "wouter";
import type { Item } from "../../api/approvals";
import { Ago } from "../../components/Time";
import { StatusBadge } from "./Badge";
import css from "./History.module.css";
import { visible } from "../../components/visible";

const HEIGHT = 68;

/** As many rows as one sees, whatever was found; more are asked for near the end. */
export function CallList({ items, open, more }: { items: Item[]; open: string; more?: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: () => HEIGHT,
    overscan: 10,
  });
  const shown = rows.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more && last >= items.length - 10) more();
  }, [more, last, items.length]);
  return (
    <div className={css.list} ref={box} tabIndex={-1}>
      <ol className={css.rows} aria-label="Calls" style={{ height: rows.getTotalSize() }}>
        {shown.map(({ index, start, key }) => {
          const item = items[index];
          return (
            item && (
              <li
                key={key}
                ref={rows.measureElement}
                data-index={index}
                style={{ transform: `translateY(${start}px)` }}
              >
                <Row item={item} isOpen={item.id === open} />
              </li>
            )
          );
        })}
      </ol>
    </div>
  );
}

function Row({ item, isOpen }: { item: Item; isOpen: boolean }) {
  return (
    <Link
      href={opened(item.id)}
      className={css.row}
      aria-current={isOpen ? "true" : undefined}
      data-row={item.id}
    >
      <span className={css.small}>
        <StatusBadge status={item.status} />
        <Ago at={item.created_at} />
      </span>
      <div className={css.sentence} title={item.sentence}>
        {item.sentence}
      </div>
      <span className={css.small}>
        <span>{visible(item.tool)}</span>
        {item.agent && <span>{visible(item.agent)}</span>}
        {item.decision && (
          <span>
            {visible(item.decision.by)}, <Ago at={item.decision.at} />
          </span>
        )}
      </span>
    </Link>
  );
}

/** The same list with this one open. */
function opened(id: string): string {
  const params = new URLSearchParams(location.search);
  params.set("id", id);
  return `/history?${params}`;
}
