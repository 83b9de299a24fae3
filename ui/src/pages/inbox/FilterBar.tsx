import { Button, NativeSelect, TextInput, type TextInputProps } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useRef, useState, type KeyboardEvent, type Ref } from "react";
import { IconFilter, IconSearch } from "../../components/icons";
import type { Feed } from "./feed";
import css from "./FilterBar.module.css";
import {
  activeFilters,
  VIEW_FILTERS,
  type InboxFilters,
  type Priority,
  type TextFilterName,
} from "./filters";

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

const TEXT_FILTERS: readonly [name: Exclude<TextFilterName, "q">, label: string][] = [
  ["tool", "Tool"],
  ["agent", "Agent"],
  ["user", "Person"],
  ["team", "Team"],
  ["thread", "Thread"],
];
const PRIORITIES = [
  { value: "", label: "Any" },
  { value: "high", label: "High" },
  { value: "medium", label: "Medium" },
  { value: "low", label: "Low" },
];
const STATUSES = [
  { value: "pending", label: "Open" },
  { value: "all", label: "All" },
  { value: "decided", label: "Decided by you" },
];

/** The search, and the other filters behind a button; active ones can be removed. */
export function FilterBar({ filters, feed, onChange, search, onLeave, onResults }: Props) {
  const [isOpen, setOpen] = useState(false);
  const active = activeFilters(filters);
  const count = active.filter(([name]) => name !== "q").length;
  const onSearchKey = (event: KeyboardEvent, text: string, send: (text: string) => void) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape") {
      if (text) send("");
      else onLeave();
    } else if (event.key === "Enter" || event.key === "ArrowDown") {
      send(text);
      onResults(text.trim());
    } else return;
    event.preventDefault();
  };
  return (
    <search className={css.bar} aria-label="Filter requests">
      <div className={css.first}>
        <TextFilter
          ref={search}
          className={css.words}
          type="search"
          aria-label="Search"
          placeholder="Search requests"
          leftSection={<IconSearch size={16} stroke={1.75} aria-hidden />}
          rightSection={<kbd aria-hidden>/</kbd>}
          value={filters.q}
          onChange={(q) => onChange({ q })}
          onKey={onSearchKey}
        />
        <Button
          variant="default"
          leftSection={<IconFilter size={16} stroke={1.75} aria-hidden />}
          px="sm"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          Filter{count ? ` (${count})` : ""}
        </Button>
      </div>
      {isOpen && <MoreFilters filters={filters} feed={feed} onChange={onChange} />}
      {active.length > 0 && (
        <div className={css.used}>
          {active.map(([name, text]) => (
            <button
              key={name}
              type="button"
              className={css.chip}
              aria-label={`Remove the filter ${text}`}
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

function MoreFilters({ filters, feed, onChange }: Pick<Props, "filters" | "feed" | "onChange">) {
  return (
    <div className={css.fields}>
      <NativeSelect
        label="Status"
        data={STATUSES}
        value={filters.status}
        onChange={(event) =>
          onChange({ ...VIEW_FILTERS.everyone, status: event.currentTarget.value as InboxFilters["status"] })
        }
      />
      <NativeSelect
        label="Priority"
        data={PRIORITIES}
        value={filters.priority}
        onChange={(event) => onChange({ priority: event.currentTarget.value as Priority })}
      />
      {TEXT_FILTERS.map(([name, label]) => (
        <TextFilter
          key={name}
          label={label}
          list={`seen-${name}`}
          value={filters[name]}
          onChange={(text) => onChange({ [name]: text })}
        />
      ))}
      <Suggestions name="tool" feed={feed} />
      <Suggestions name="agent" feed={feed} />
    </div>
  );
}

const MAX_SUGGESTION_ROWS = 500;

/** Names in the list, as suggestions. */
function Suggestions({ name, feed }: { name: "tool" | "agent"; feed: Feed }) {
  const names = new Set(feed.ids.slice(0, MAX_SUGGESTION_ROWS).map((id) => feed.rows.get(id)?.[name] ?? ""));
  return (
    <datalist id={`seen-${name}`}>
      {[...names].filter(Boolean).map((each) => (
        <option key={each} value={each} />
      ))}
    </datalist>
  );
}

interface TextFilterProps extends Omit<TextInputProps, "value" | "onChange"> {
  value: string;
  onChange: (text: string) => void;
  /** `send` applies a text at once. */
  onKey?: (event: KeyboardEvent, text: string, send: (text: string) => void) => void;
  ref?: Ref<HTMLInputElement>;
}

const TYPING_PAUSE = 300; // ms without a key press before the list is reloaded

/** A text filter: the URL decides, unless the user is typing. */
function TextFilter({ value, onChange, onKey, ...props }: TextFilterProps) {
  const [text, setText] = useState(value);
  const sent = useRef(value);
  const send = useDebouncedCallback((typed: string) => {
    sent.current = typed.trim();
    onChange(sent.current);
  }, TYPING_PAUSE);
  useEffect(() => {
    if (value !== sent.current) setText(value);
    sent.current = value;
  }, [value]);
  const sendNow = (typed: string) => {
    setText(typed);
    send(typed); // replaces what is still to be sent
    sent.current = typed.trim();
    onChange(sent.current);
  };
  return (
    <TextInput
      {...props}
      value={text}
      onKeyDown={onKey && ((event) => onKey(event, text, sendNow))}
      onChange={({ currentTarget }) => {
        setText(currentTarget.value);
        send(currentTarget.value);
      }}
    />
  );
}
