import { Anchor, Button, Group, NativeSelect, Paper, Stack, Text } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { Link, useLocation } from "wouter";
import { mayDecide, useMe } from "../../api/currentUser";
import { Dialog } from "../../components/Dialog";
import { Page } from "../../components/Page";
import { SearchField } from "../../components/SearchField";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { useAddressFilters } from "../../components/useAddressFilters";
import * as messages from "./messages";
import { NewObjective } from "./NewObjective";
import css from "./Okrs.module.css";
import { ObjectiveStatusBadge, ProgressBar } from "./Progress";
import {
  describeProgress,
  STATUS_OPTIONS,
  useObjectives,
  type ObjectiveFilters,
  type ObjectiveInfo,
} from "./queries";

const ObjectivePage = lazy(() => import("./ObjectivePage"));

/** All objectives, or one objective with its key results. */
export default function Okrs() {
  useLocation(); // rerenders for another objective
  const id = decodeURIComponent(location.pathname.split("/")[2] ?? ""); // the router decodes only a part of it
  if (!id) return <ObjectiveList />;
  return (
    <Page title={messages.objectiveNumber(id)}>
      <Anchor component={Link} href="/okrs" size="sm" w="fit-content">
        {messages.allObjectives}
      </Anchor>
      <Suspense fallback={<Loading />}>
        <ObjectivePage key={id} id={id} />
      </Suspense>
    </Page>
  );
}

function ObjectiveList() {
  const [get, set] = useAddressFilters();
  const filters = {
    q: get("q"),
    quarter: get("quarter"),
    status: get("status") as ObjectiveFilters["status"],
  };
  const list = useObjectives(filters);
  const objectives = list.data?.pages.flatMap(({ items }) => items) ?? [];
  const isFiltered = Boolean(filters.q || filters.quarter || filters.status);
  return (
    <Page title={messages.okrs}>
      <div className={css.filters}>
        <SearchField label={messages.searchObjectives} />
        <NativeSelect
          label={messages.quarter}
          data={[{ value: "", label: messages.anyQuarter }, ...(list.data?.pages[0]?.quarters ?? [])]}
          value={filters.quarter}
          onChange={(event) => set({ quarter: event.currentTarget.value })}
        />
        <NativeSelect
          label={messages.status}
          data={[{ value: "", label: messages.anyStatus }, ...STATUS_OPTIONS]}
          value={filters.status}
          onChange={(event) => set({ status: event.currentTarget.value })}
        />
        <CreateButton />
      </div>
      {list.isPending && <Loading />}
      {list.error && <ErrorMessage error={list.error} onRetry={() => void list.refetch()} />}
      {list.data && objectives.length === 0 && (
        <EmptyState title={isFiltered ? messages.noObjectivesMatch : messages.noObjectivesYet}>
          {isFiltered ? messages.changeSearchOrFilters : messages.createOne}
        </EmptyState>
      )}
      <Stack gap="sm" component="ul" className={css.plain} aria-label={messages.objectives}>
        {objectives.map((objective) => (
          <ObjectiveRow key={objective.id} objective={objective} />
        ))}
      </Stack>
      {list.hasNextPage && (
        <Button variant="default" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {messages.showMore}
        </Button>
      )}
    </Page>
  );
}

function CreateButton() {
  const [isOpen, setOpen] = useState(false);
  const [, navigate] = useLocation();
  if (!mayDecide(useMe().data)) return null;
  return (
    <>
      <Button onClick={() => setOpen(true)}>{messages.newObjective}</Button>
      {isOpen && (
        <Dialog title={messages.newObjective} onClose={() => setOpen(false)}>
          <NewObjective onCreated={(id) => navigate(`/okrs/${id}`)} onClose={() => setOpen(false)} />
        </Dialog>
      )}
    </>
  );
}

function ObjectiveRow({ objective }: { objective: ObjectiveInfo }) {
  const { id, title, quarter, status, percent, key_results } = objective;
  return (
    <Paper withBorder p="md" component="li">
      <Group justify="space-between" gap="xs">
        <Anchor component={Link} href={`/okrs/${encodeURIComponent(id)}`} fw={600} className={css.link}>
          {title}
        </Anchor>
        <Group gap="xs">
          <Text size="sm">{quarter}</Text>
          <ObjectiveStatusBadge status={status} />
        </Group>
      </Group>
      <div className={css.result}>
        <Text size="sm" c="dimmed">
          {messages.keyResultsCounted(id, key_results.length)}
        </Text>
        <ProgressBar label={id} percent={percent} />
      </div>
      <ul className={css.results} aria-label={messages.keyResultsOf(id)}>
        {key_results.map((result) => (
          <li key={result.id} className={css.result}>
            <span>
              {result.title}: {describeProgress(result)}
            </span>
            <ProgressBar label={result.id} percent={result.percent} />
          </li>
        ))}
      </ul>
    </Paper>
  );
}
