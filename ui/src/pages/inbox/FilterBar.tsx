import { Button, NativeSelect, TextInput, type TextInputProps } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useRef, useState, type Ref } from "react";
import type { Feed } from "./feed";
import css from "./FilterBar.module.css";
import { activeFilters, type InboxFilters, type Priority, type TextFilterName } from "./filters";

interface Props {
  filters: InboxFilters;
  feed: Feed;
  onChange: (changed: Partial<InboxFilters>) => void;
  search: Ref<HTMLInputElement>;
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
  { value: "pending", label: "Pending" },
  { value: "all", label: "All" },
];

/** The filters: common ones visible, the rest folded; active ones can be removed. */
export function FilterBar({ filters, feed, onChange, search }: Props) {
  const active = activeFilters(filters);
  const folded = active.filter(([name]) => name !== "q" && name !== "mine").length;
  return (
    <search className={css.bar} aria-label="Filter approvals">
      <div className={css.first}>
        <TextFilter
          ref={search}
          className={css.words}
          type="search"
          aria-label="Search"
          placeholder="Search"
          value={filters.q}
          onChange={(q) => onChange({ q })}
        />
        <NativeSelect
          aria-label="Status"
          data={STATUSES}
          value={filters.status}
          onChange={(event) => onChange({ status: event.currentTarget.value as InboxFilters["status"] })}
        />
        <Button
          px="sm"
          variant={filters.mine ? "filled" : "default"}
          aria-pressed={filters.mine}
          onClick={() => onChange({ mine: !filters.mine })}
        >
          Waiting for me
        </Button>
      </div>
      <MoreFilters filters={filters} feed={feed} onChange={onChange} count={folded} />
      {active.length > 0 && (
        <div className={css.used}>
          {active.map(([name, text]) => (
            <button
              key={name}
              type="button"
              className={css.chip}
              aria-label={`Remove the filter ${text}`}
              onClick={() => onChange({ [name]: name === "mine" ? false : "" })}
            >
              <bdi>{text}</bdi> <span aria-hidden>×</span>
            </button>
          ))}
        </div>
      )}
    </search>
  );
}

function MoreFilters({ filters, feed, onChange, count }: Omit<Props, "search"> & { count: number }) {
  const [open, setOpen] = useState(false);
  return (
    <details className={css.more} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>More filters{count ? ` (${count})` : ""}</summary>
      {open && (
        <div className={css.fields}>
          {TEXT_FILTERS.map(([name, label]) => (
            <TextFilter
              key={name}
              label={label}
              list={`seen-${name}`}
              value={filters[name]}
              onChange={(text) => onChange({ [name]: text })}
            />
          ))}
          <NativeSelect
            label="Priority"
            data={PRIORITIES}
            value={filters.priority}
            onChange={(event) => onChange({ priority: event.currentTarget.value as Priority })}
          />
          <Suggestions name="tool" feed={feed} />
          <Suggestions name="agent" feed={feed} />
        </div>
      )}
    </details>
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
  ref?: Ref<HTMLInputElement>;
}

const TYPING_PAUSE = 300; // ms without a key press before the list is reloaded

/** A text filter: the URL decides, unless the user is typing. */
function TextFilter({ value, onChange, ...props }: TextFilterProps) {
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
  return (
    <TextInput
      {...props}
      value={text}
      onChange={({ currentTarget }) => {
        setText(currentTarget.value);
        send(currentTarget.value);
      }}
    />
  );
}
