import { Button, NativeSelect } from "@mantine/core";
import { useState, type Ref } from "react";
import type { Feed } from "./feed";
import css from "./FilterBar.module.css";
import { inUse, type Filters, type Priority, type Text } from "./filters";
import { TextFilter } from "./TextFilter";

interface Props {
  filters: Filters;
  feed: Feed;
  onChange: (changed: Partial<Filters>) => void;
  search: Ref<HTMLInputElement>;
}

const MORE: readonly [name: Exclude<Text, "q">, label: string][] = [
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

/** Narrows the list. The usual is at hand, the rest is folded; what is in use can be seen and taken away. */
export function FilterBar({ filters, feed, onChange, search }: Props) {
  const used = inUse(filters);
  const folded = used.filter(([name]) => name !== "q" && name !== "mine").length;
  return (
    <search className={css.bar} aria-label="Filter the requests">
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
          onChange={(event) => onChange({ status: event.currentTarget.value as Filters["status"] })}
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
      <More filters={filters} feed={feed} onChange={onChange} count={folded} />
      {used.length > 0 && (
        <div className={css.used}>
          {used.map(([name, text]) => (
            <button
              key={name}
              type="button"
              className={css.chip}
              aria-label={`Take away the filter ${text}`}
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

function More({ filters, feed, onChange, count }: Omit<Props, "search"> & { count: number }) {
  const [open, setOpen] = useState(false);
  return (
    <details className={css.more} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>More filters{count ? ` (${count})` : ""}</summary>
      {open && (
        <div className={css.fields}>
          {MORE.map(([name, label]) => (
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
          <Seen name="tool" feed={feed} />
          <Seen name="agent" feed={feed} />
        </div>
      )}
    </details>
  );
}

const LOOKED_AT = 500;

/** What stands in the list already, so that nobody has to remember how it is spelled. */
function Seen({ name, feed }: { name: "tool" | "agent"; feed: Feed }) {
  const names = new Set(feed.ids.slice(0, LOOKED_AT).map((id) => feed.rows.get(id)?.[name] ?? ""));
  return (
    <datalist id={`seen-${name}`}>
      {[...names].filter(Boolean).map((each) => (
        <option key={each} value={each} />
      ))}
    </datalist>
  );
}
