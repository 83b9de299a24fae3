import { Anchor, Button, NativeSelect, Text } from "@mantine/core";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { mayDecide, useMe } from "../../api/currentUser";
import { Dialog } from "../../components/Dialog";
import { SearchField } from "../../components/SearchField";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import { useAddressFilters } from "../../components/useAddressFilters";
import css from "./Content.module.css";
import { CONTENT_KINDS, daysAgo, sitePath, type ContentKind } from "./contentKinds";
import { ContentStatusBadge } from "./ContentStatusBadge";
import * as messages from "./messages";
import { NewItem } from "./NewItem";
import { useContentList, type ContentFilters, type ContentRow } from "./queries";

/** The items of one kind: search, filters, a table, and the form for a new one. */
export function ContentList({ kind }: { kind: ContentKind }) {
  const filters = useFilters();
  const list = useContentList(kind, filters);
  const rows = list.data?.pages.flatMap(({ items }) => items) ?? [];
  const isFiltered = Boolean(filters.q || filters.status || filters.notViewedSince);
  return (
    <>
      <div className={css.filters}>
        <SearchField label={messages.searchItems(kind)} />
        {kind !== "images" && <FilterFields />}
        <CreateButton kind={kind} />
      </div>
      {list.isPending && <Loading />}
      {list.error && <ErrorMessage error={list.error} onRetry={() => void list.refetch()} />}
      {list.data && rows.length === 0 && (
        <EmptyState title={isFiltered ? messages.noItemsMatch(kind) : messages.noItemsYet(kind)}>
          {isFiltered ? messages.changeSearchOrFilters : CONTENT_KINDS[kind].about}
        </EmptyState>
      )}
      {rows.length > 0 && <ContentTable kind={kind} rows={rows} />}
      {list.hasNextPage && (
        <Button variant="default" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {messages.showMore}
        </Button>
      )}
      <Text size="sm" c="dimmed" role="status">
        {rows.length > 0 && countLabel(kind, rows.length, list.hasNextPage)}
      </Text>
    </>
  );
}

function useFilters(): ContentFilters {
  const [get] = useAddressFilters();
  const [openedAt] = useState(() => Date.now()); // else every render would be another query
  return {
    q: get("q"),
    status: get("status") as ContentFilters["status"],
    notViewedSince: daysAgo(get("unviewed"), openedAt),
    sort: (get("sort") || "updated") as ContentFilters["sort"],
  };
}

function FilterFields() {
  const [get, set] = useAddressFilters();
  const fields = [
    { name: "status", label: messages.status, data: messages.STATUS_CHOICES },
    { name: "unviewed", label: messages.views, data: messages.VIEW_CHOICES },
    { name: "sort", label: messages.sortBy, data: messages.SORT_CHOICES },
  ];
  return fields.map(({ name, label, data }) => (
    <NativeSelect
      key={name}
      label={label}
      data={data}
      value={get(name)}
      onChange={(event) => set({ [name]: event.currentTarget.value })}
    />
  ));
}

function CreateButton({ kind }: { kind: ContentKind }) {
  const [isOpen, setOpen] = useState(false);
  const [, navigate] = useLocation();
  const { one } = CONTENT_KINDS[kind];
  if (!mayDecide(useMe().data)) return null;
  return (
    <>
      <Button onClick={() => setOpen(true)}>{messages.newItem(one)}</Button>
      {isOpen && (
        <Dialog title={messages.newItem(one)} onClose={() => setOpen(false)}>
          <NewItem
            kind={kind}
            onCreated={(id) => navigate(`/content/${kind}/${encodeURIComponent(id)}`)}
            onClose={() => setOpen(false)}
          />
        </Dialog>
      )}
    </>
  );
}

function ContentTable({ kind, rows }: { kind: ContentKind; rows: ContentRow[] }) {
  const isImage = kind === "images";
  return (
    <table className={css.table} aria-label={CONTENT_KINDS[kind].name}>
      <thead>
        <tr>
          <th scope="col">{isImage ? messages.file : messages.title}</th>
          {isImage ? (
            <th scope="col">{messages.usedInHeading}</th>
          ) : (
            <>
              <th scope="col">{messages.status}</th>
              <th scope="col">{messages.lastViewed}</th>
              <th scope="col">{messages.views}</th>
            </>
          )}
          <th scope="col">{messages.updated}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.id}>
            <td>
              <Anchor
                component={Link}
                href={`/content/${kind}/${encodeURIComponent(row.id)}`}
                fw={600}
                inherit
              >
                {row.title}
              </Anchor>
              <div className={css.slug}>{isImage ? row.id : sitePath(kind, row.id)}</div>
            </td>
            {isImage ? (
              <td data-label={messages.usedInHeading}>{row.usedIn?.join(", ") || messages.nowhere}</td>
            ) : (
              <Usage row={row} />
            )}
            <td data-label={messages.updated} className={css.nowrap}>
              <TimeAgo at={row.updatedAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Usage({ row }: { row: ContentRow }) {
  return (
    <>
      <td>{row.status && <ContentStatusBadge status={row.status} />}</td>
      <td data-label={messages.lastViewed} className={css.nowrap}>
        {row.lastViewedAt ? <TimeAgo at={row.lastViewedAt} /> : messages.never}
      </td>
      <td data-label={messages.views}>{row.views?.toLocaleString("en")}</td>
    </>
  );
}

function countLabel(kind: ContentKind, count: number, hasMore: boolean): string {
  const found = count === 1 ? `1 ${CONTENT_KINDS[kind].one}` : `${count} ${kind}`;
  return hasMore ? messages.moreThanShown(found) : `${found}.`;
}
