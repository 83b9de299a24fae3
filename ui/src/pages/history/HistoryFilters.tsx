import { Button, NativeSelect, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { callApi } from "../../api/client";
import { DayFields, FilterForm } from "./FilterForm";
import css from "./History.module.css";
import * as messages from "./messages";
import { STATUSES } from "./StatusBadge";

const MORE_FILTERS = ["tool", "agent", "user", "thread_id", "since", "until"] as const;
export const FILTERS = ["q", "status", ...MORE_FILTERS];

/** Search and filters. */
export function HistoryFilters() {
  return (
    <FilterForm label={messages.searchCalls} names={FILTERS}>
      {({ get, send, clear }) => {
        const filled = MORE_FILTERS.filter((name) => get(name)).length;
        const textField = (name: string, label: string) => (
          <TextInput className={css.narrow} name={name} label={label} defaultValue={get(name)} />
        );
        return (
          <>
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
              onChange={send}
              data={[
                { value: "", label: messages.any },
                ...STATUSES.map((each) => ({ value: each, label: each })),
              ]}
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
                {textField("tool", messages.tool)}
                {textField("agent", messages.agent)}
                {textField("user", messages.person)}
                <ThreadField id={get("thread_id")} />
                <DayFields get={get} onChange={send} />
                <Button variant="subtle" onClick={clear}>
                  {messages.clear}
                </Button>
              </div>
            </details>
          </>
        );
      }}
    </FilterForm>
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
