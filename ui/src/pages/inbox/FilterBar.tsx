import { Button } from "@mantine/core";
import { lazy, Suspense, useState, type KeyboardEvent, type Ref } from "react";
import { IconFilter, IconSearch } from "../../components/icons";
import type { Feed } from "./feed";
import css from "./FilterBar.module.css";
import { activeFilters, type InboxFilters } from "./filters";
import * as messages from "./messages";
import { useTypedText } from "./useTypedText";

const MoreFilters = lazy(() => import("./MoreFilters"));

interface Props {
  filters: InboxFilters;
  feed: Feed;
  onChange: (changed: Partial<InboxFilters>) => void;
  search: Ref<HTMLInputElement>;
  /** The user leaves the search. */
  onLeave: () => void;
  /** Goes to the first result of these words. */
  onResults: (q: string) => void;
}

/** The search, and the other filters behind a button; active ones can be removed. */
export function FilterBar({ filters, feed, onChange, search, onLeave, onResults }: Props) {
  const [isOpen, setOpen] = useState(false);
  const active = activeFilters(filters);
  const count = active.filter(([name]) => name !== "q").length;
  const { text, setText, sendNow } = useTypedText(filters.q, (q) => onChange({ q }));
  const onSearchKey = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape") {
      if (text) sendNow("");
      else onLeave();
    } else if (event.key === "Enter" || event.key === "ArrowDown") {
      sendNow(text);
      onResults(text.trim());
    } else return;
    event.preventDefault();
  };
  return (
    <search className={css.bar} aria-label={messages.filterRequests}>
      <div className={css.first}>
        <div className={css.words}>
          <IconSearch size={16} stroke={1.75} aria-hidden />
          <input
            ref={search}
            type="search"
            aria-label={messages.search}
            placeholder={messages.searchRequests}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            onKeyDown={onSearchKey}
          />
          <kbd aria-hidden>/</kbd>
        </div>
        <Button
          variant="default"
          leftSection={<IconFilter size={16} stroke={1.75} aria-hidden />}
          px="sm"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          {messages.filterWithCount(count ? ` (${count})` : "")}
        </Button>
      </div>
      {isOpen && (
        <Suspense>
          <MoreFilters filters={filters} feed={feed} onChange={onChange} />
        </Suspense>
      )}
      {active.length > 0 && (
        <div className={css.used}>
          {active.map(([name, text]) => (
            <button
              key={name}
              type="button"
              className={css.chip}
              aria-label={messages.removeFilter(text)}
              onClick={() => onChange({ [name]: "" })}
            >
              <bdi>{text}</bdi> <span aria-hidden>×</span>
            </button>
          ))}
        </div>
      )}
    </search>
  );
}
