import { Button, NativeSelect, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useRef, type FormEvent } from "react";
import { callApi } from "../../api/client";
import { useAddressFilters } from "../../components/useAddressFilters";
import css from "./History.module.css";
import * as messages from "./messages";
import { STATUSES } from "./StatusBadge";

const MORE_FILTERS = ["tool", "agent", "user", "thread_id", "since", "until"] as const;
export const FILTERS = ["q", "status", ...MORE_FILTERS];

/** Search and filters; submitted explicitly, or by a selection. */
export function HistoryFilters() {
  const [get, set] = useAddressFilters();
  const form = useRef<HTMLFormElement>(null);
  const send = (event?: FormEvent) => {
    event?.preventDefault();
    const formData = new FormData(form.current ?? undefined);
    set(Object.fromEntries(FILTERS.map((name) => [name, String(formData.get(name) ?? "").trim()])));
  };
  const filled = MORE_FILTERS.filter((name) => get(name)).length;
  return (
    <form
      ref={form}
      role="search"
      aria-label={messages.searchCalls}
      onSubmit={send}
      key={FILTERS.map(get).join("\n")}
      className={css.filters}
    >
      <TextInput
        className={css.words}
        name="q"
        type="search"
        label={messages.keywords}
        placeholder={messages.keywordsExample}
        defaultValue={get("q")}
      />
      <NativeSelect
        className={css.brief}
        name="status"
        label={messages.status}
        defaultValue={get("status")}
        onChange={() => send()}
        data={[{ value: "", label: messages.any }, ...STATUSES.map((each) => ({ value: each, label: each }))]}
      />
      <Button type="submit" variant="default">
        {messages.search}
      </Button>
      <details className={css.more} open={filled > 0} style={{ flexBasis: "100%" }}>
        <summary>
          {messages.moreFilters}
          {filled > 0 && ` (${filled})`}
        </summary>
        <div className={css.filters}>
          <TextInput className={css.narrow} name="tool" label={messages.tool} defaultValue={get("tool")} />
          <TextInput className={css.narrow} name="agent" label={messages.agent} defaultValue={get("agent")} />
          <TextInput className={css.narrow} name="user" label={messages.person} defaultValue={get("user")} />
          <ThreadField id={get("thread_id")} />
          <TextInput
            className={css.narrow}
            name="since"
            type="date"
            label={messages.from}
            defaultValue={get("since")}
            onChange={() => send()}
          />
          <TextInput
            className={css.narrow}
            name="until"
            type="date"
            label={messages.to}
            defaultValue={get("until")}
            onChange={() => send()}
          />
          <Button variant="subtle" onClick={() => set(Object.fromEntries(FILTERS.map((name) => [name, ""])))}>
            {messages.clear}
          </Button>
        </div>
      </details>
    </form>
  );
}

/** A chat by its title; other conversations have only the id that their program gave them. */
function ThreadField({ id }: { id: string }) {
  const title = useQuery({
    queryKey: ["thread-title", id],
    queryFn: ({ signal }) =>
      callApi("get", "/api/threads/{thread_id}", { path: { thread_id: id }, query: { last: 1 }, signal }),
    enabled: id.startsWith("thread-"),
    retry: false,
  }).data?.title;
  return title ? (
    <>
      <TextInput className={css.narrow} label={messages.conversation} value={title} title={title} readOnly />
      <input type="hidden" name="thread_id" value={id} />
    </>
  ) : (
    <TextInput className={css.narrow} name="thread_id" label={messages.conversation} defaultValue={id} />
  );
}
