import { Button, NativeSelect, TextInput } from "@mantine/core";
import { useRef, type FormEvent } from "react";
import { useAddressFilters } from "../../components/useAddressFilters";
import css from "./History.module.css";
import { STATUSES } from "./StatusBadge";

const MORE_FILTERS = ["tool", "agent", "user", "thread_id", "since", "until"] as const;

/** Search and filters; submitted explicitly, or by a selection. */
export function HistoryFilters() {
  const [get, set] = useAddressFilters();
  const form = useRef<HTMLFormElement>(null);
  const names = ["q", "status", ...MORE_FILTERS];
  const send = (event?: FormEvent) => {
    event?.preventDefault();
    const formData = new FormData(form.current ?? undefined);
    set(Object.fromEntries(names.map((name) => [name, String(formData.get(name) ?? "").trim()])));
  };
  const filled = MORE_FILTERS.filter((name) => get(name)).length;
  return (
    <form
      ref={form}
      role="search"
      aria-label="Search calls"
      onSubmit={send}
      key={names.map(get).join("\n")}
      className={css.filters}
    >
      <TextInput
        className={css.words}
        name="q"
        type="search"
        label="Keywords"
        placeholder="refund carol"
        defaultValue={get("q")}
      />
      <NativeSelect
        className={css.brief}
        name="status"
        label="Status"
        defaultValue={get("status")}
        onChange={() => send()}
        data={[{ value: "", label: "Any" }, ...STATUSES.map((each) => ({ value: each, label: each }))]}
      />
      <Button type="submit" variant="default">
        Search
      </Button>
      <details className={css.more} open={filled > 0} style={{ flexBasis: "100%" }}>
        <summary>More filters{filled > 0 && ` (${filled})`}</summary>
        <div className={css.filters}>
          <TextInput className={css.narrow} name="tool" label="Tool" defaultValue={get("tool")} />
          <TextInput className={css.narrow} name="agent" label="Agent" defaultValue={get("agent")} />
          <TextInput className={css.narrow} name="user" label="Person" defaultValue={get("user")} />
          <TextInput
            className={css.narrow}
            name="thread_id"
            label="Conversation"
            defaultValue={get("thread_id")}
          />
          <TextInput
            className={css.narrow}
            name="since"
            type="date"
            label="From"
            defaultValue={get("since")}
            onChange={() => send()}
          />
          <TextInput
            className={css.narrow}
            name="until"
            type="date"
            label="To"
            defaultValue={get("until")}
            onChange={() => send()}
          />
          <Button variant="subtle" onClick={() => set(Object.fromEntries(names.map((name) => [name, ""])))}>
            Clear
          </Button>
        </div>
      </details>
    </form>
  );
}
