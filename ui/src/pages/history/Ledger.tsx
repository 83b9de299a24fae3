import { Anchor, Button, NativeSelect, TextInput } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { readApproval, type ApprovalSnapshot } from "../../api/approvals";
import { callApi } from "../../api/client";
import { escapeInvisible } from "../../components/escapeInvisible";
import { beginsWithToolName } from "../../components/beginsWithToolName";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { endOfDay, startOfDay, useAddressFilters } from "../../components/useAddressFilters";
import { useNearScreen } from "../../components/useNearScreen";
import { DayFields, FilterForm } from "./FilterForm";
import css from "./History.module.css";
import * as messages from "./ledgerMessages";
import { LedgerStatus } from "./LedgerStatus";
import { EVENT_KINDS, type TimelineEntry } from "./sentences";
import { dotColor } from "./StatusBadge";
import { TimelineStep } from "./Timeline";

const CALL_NAME_AGE = 60_000; // an edit changes the sentence

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
      {found.isPending && <Loading label={messages.loadingLedger} />}
      {found.error && <ErrorMessage error={found.error} onRetry={() => void found.refetch()} />}
      {found.data && entries.length === 0 && !found.hasNextPage && (
        <EmptyState title={messages.noEntries}>{messages.noEntriesMatch}</EmptyState>
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
          {messages.showEarlierEntries}
        </Button>
      )}
    </>
  );
}

const NAMES = ["kind", "actor", "approval", "since", "until"];

function LedgerFilters() {
  return (
    <FilterForm label={messages.filterEntries} names={NAMES}>
      {({ get, send }) => (
        <>
          <NativeSelect
            className={css.narrow}
            name="kind"
            label={messages.event}
            defaultValue={get("kind")}
            onChange={send}
            data={[
              { value: "", label: messages.any },
              ...EVENT_KINDS.map((kind) => ({ value: kind, label: kind.replaceAll("_", " ") })),
            ]}
          />
          <TextInput
            className={css.narrow}
            name="actor"
            label={messages.actor}
            placeholder={messages.actorExample}
            defaultValue={get("actor")}
          />
          <TextInput
            className={css.narrow}
            name="approval"
            label={messages.approvalHeading}
            defaultValue={get("approval")}
          />
          <DayFields get={get} />
          <Button type="submit" variant="default">
            {messages.show}
          </Button>
        </>
      )}
    </FilterForm>
  );
}

/** Ledger entries with links to their calls. */
function LedgerEntries({ entries }: { entries: TimelineEntry[] }) {
  return (
    <ol className={css.timeline} aria-label={messages.entryHeading}>
      {entries.map((entry) => (
        <li
          key={entry.seq}
          className={css.step}
          data-kind={entry.kind}
          style={{ "--dot": dotColor(entry.kind) } as object}
        >
          <TimelineStep entry={entry} />
          {entry.approval_id && <CallLink id={entry.approval_id} />}
        </li>
      ))}
    </ol>
  );
}

/** What the entry is about: the sentence and the tool of the call, read once the entry is near the screen. */
function CallLink({ id }: { id: string }) {
  const [container, isNear] = useNearScreen<HTMLDivElement>();
  const call = useQuery({
    queryKey: ["call-name", id],
    queryFn: async ({ signal }) => nameCall(await readApproval(id, signal)),
    enabled: isNear,
    staleTime: CALL_NAME_AGE,
    retry: false,
  });
  return (
    <div ref={container} className={css.about} data-about={id}>
      <Anchor component={Link} href={`/history?id=${encodeURIComponent(id)}`} size="sm" underline="always">
        {call.data?.sentence ?? messages.showCall}
      </Anchor>
      {call.data && !beginsWithToolName(call.data.sentence, call.data.tool) && (
        <span className={css.tool}>{call.data.tool}</span>
      )}
    </div>
  );
}

/** The server has escaped the sentence. */
function nameCall({ sentence, tool }: ApprovalSnapshot) {
  return { sentence, tool: escapeInvisible(tool) };
}
