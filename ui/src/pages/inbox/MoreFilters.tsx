import { NativeSelect, TextInput, type TextInputProps } from "@mantine/core";
import type { Feed } from "./feed";
import css from "./FilterBar.module.css";
import * as messages from "./filterMessages";
import { VIEW_FILTERS, type InboxFilters, type Priority, type TextFilterName } from "./filters";
import { useTypedText } from "./useTypedText";

interface Props {
  filters: InboxFilters;
  feed: Feed;
  onChange: (changed: Partial<InboxFilters>) => void;
}

const TEXT_FILTERS: readonly [name: Exclude<TextFilterName, "q">, label: string][] = [
  ["tool", messages.tool],
  ["agent", messages.agent],
  ["user", messages.person],
  ["team", messages.team],
  ["thread", messages.thread],
];

/** The filters that few people need, loaded when they are opened. */
export default function MoreFilters({ filters, feed, onChange }: Props) {
  return (
    <div className={css.fields}>
      <NativeSelect
        label={messages.status}
        data={messages.STATUSES}
        value={filters.status}
        onChange={(event) =>
          onChange({ ...VIEW_FILTERS.everyone, status: event.currentTarget.value as InboxFilters["status"] })
        }
      />
      <NativeSelect
        label={messages.priority}
        data={messages.PRIORITIES}
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
}

function TextFilter({ value, onChange, ...props }: TextFilterProps) {
  const { text, setText } = useTypedText(value, onChange);
  return <TextInput {...props} value={text} onChange={({ currentTarget }) => setText(currentTarget.value)} />;
}
