import { Anchor, Button, NativeSelect, TextInput } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useRef, type FormEvent } from "react";
import { Link } from "wouter";
import { callApi } from "../../api/client";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { endOfDay, startOfDay, useAddressFilters } from "../../components/useAddressFilters";
import css from "./History.module.css";
import { LedgerStatus } from "./LedgerStatus";
import { EVENT_KINDS, type TimelineEntry } from "./sentences";
import { dotColor } from "./StatusBadge";
import { TimelineStep } from "./Timeline";

/** All ledger entries, newest first, and their verification. */
export default function Ledger() {
  const [get] = useAddressFilters();
  const query = {
    kind: get("kind"),
    actor: get("actor"),
    approval_id: get("approval"),
    since: startOfDay(get("since")),
    until: endOfDay(get("until")),
    limit: 100,
  };
  const found = useInfiniteQuery({
    queryKey: ["audit", query],
    queryFn: ({ pageParam, signal }) =>
      callApi("get", "/api/audit", { query: { ...query, order: "newest", after: pageParam }, signal }),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (page) => (page.next === null ? undefined : Number(page.next)),
  });
  const entries = found.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <>
      <LedgerStatus />
      <LedgerFilters />
      {found.isPending && <Loading label="Loading ledger" />}
      {found.error && <ErrorMessage error={found.error} onRetry={() => void found.refetch()} />}
      {found.data && entries.length === 0 && !found.hasNextPage && (
        <EmptyState title="No entries">No ledger entries match these filters.</EmptyState>
      )}
      {entries.length > 0 && <LedgerEntries entries={entries} />}
      {found.hasNextPage && (
        <Button
          variant="default"
          mt="sm"
          mih={44}
          loading={found.isFetchingNextPage}
          onClick={() => void found.fetchNextPage()}
        >
          Show earlier entries
        </Button>
      )}
    </>
  );
}

const NAMES = ["kind", "actor", "approval", "since", "until"];

function LedgerFilters() {
  const [get, set] = useAddressFilters();
  const form = useRef<HTMLFormElement>(null);
  const send = (event?: FormEvent) => {
    event?.preventDefault();
    const formData = new FormData(form.current ?? undefined);
    set(Object.fromEntries(NAMES.map((name) => [name, String(formData.get(name) ?? "").trim()])));
  };
  return (
    <form
      ref={form}
      role="search"
      aria-label="Filter entries"
      className={css.filters}
      onSubmit={send}
      key={NAMES.map(get).join("\n")}
    >
      <NativeSelect
        className={css.narrow}
        name="kind"
        label="Event"
        defaultValue={get("kind")}
        onChange={() => send()}
        data={[
          { value: "", label: "Any" },
          ...EVENT_KINDS.map((kind) => ({ value: kind, label: kind.replaceAll("_", " ") })),
        ]}
      />
      <TextInput
        className={css.narrow}
        name="actor"
        label="Actor"
        placeholder="bob"
        defaultValue={get("actor")}
      />
      <TextInput className={css.narrow} name="approval" label="Approval" defaultValue={get("approval")} />
      <TextInput className={css.narrow} name="since" type="date" label="From" defaultValue={get("since")} />
      <TextInput className={css.narrow} name="until" type="date" label="To" defaultValue={get("until")} />
      <Button type="submit" variant="default">
        Show
      </Button>
    </form>
  );
}

/** Ledger entries with links to their calls. */
function LedgerEntries({ entries }: { entries: TimelineEntry[] }) {
  return (
    <ol className={css.timeline} aria-label="Entries">
      {entries.map((entry) => (
        <li
          key={entry.seq}
          className={css.step}
          data-kind={entry.kind}
          style={{ "--dot": dotColor(entry.kind) } as object}
        >
          <TimelineStep entry={entry} />
          {entry.approval_id && (
            <Anchor component={Link} href={`/history?id=${encodeURIComponent(entry.approval_id)}`} size="xs">
              Show the call of entry {entry.seq}
            </Anchor>
          )}
        </li>
      ))}
    </ol>
  );
}
