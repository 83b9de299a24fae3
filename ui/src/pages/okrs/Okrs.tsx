import { Anchor, Button, Group, NativeSelect, Paper, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { lazy, Suspense, useState } from "react";
import { Link, useLocation } from "wouter";
import { mayDecide, useMe } from "../../api/currentUser";
import { Dialog } from "../../components/Dialog";
import { Page } from "../../components/Page";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
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
    <Page title={`Objective ${id}`}>
      <Anchor component={Link} href="/okrs" size="sm" w="fit-content">
        All objectives
      </Anchor>
      <Suspense fallback={<Loading />}>
        <ObjectivePage key={id} id={id} />
      </Suspense>
    </Page>
  );
}

function ObjectiveList() {
  const [values, setValues] = useState<ObjectiveFilters>({ q: "", quarter: "", status: "" });
  const [q] = useDebouncedValue(values.q.trim(), 250);
  const list = useObjectives({ ...values, q });
  const objectives = list.data?.pages.flatMap(({ items }) => items) ?? [];
  const isFiltered = Boolean(q || values.quarter || values.status);
  return (
    <Page title="OKRs">
      <div className={css.filters}>
        <TextInput
          label="Search objectives"
          type="search"
          value={values.q}
          onChange={(event) => setValues({ ...values, q: event.currentTarget.value })}
        />
        <NativeSelect
          label="Quarter"
          data={[{ value: "", label: "any quarter" }, ...(list.data?.pages[0]?.quarters ?? [])]}
          value={values.quarter}
          onChange={(event) => setValues({ ...values, quarter: event.currentTarget.value })}
        />
        <NativeSelect
          label="Status"
          data={[{ value: "", label: "any status" }, ...STATUS_OPTIONS]}
          value={values.status}
          onChange={(event) =>
            setValues({ ...values, status: event.currentTarget.value as ObjectiveFilters["status"] })
          }
        />
        <CreateButton />
      </div>
      {list.isPending && <Loading />}
      {list.error && <ErrorMessage error={list.error} onRetry={() => void list.refetch()} />}
      {list.data && objectives.length === 0 && (
        <EmptyState title={isFiltered ? "No objectives match" : "No objectives yet"}>
          {isFiltered ? "Change the search or the filters." : "Create one here, or ask an agent to."}
        </EmptyState>
      )}
      <Stack gap="sm" component="ul" className={css.plain} aria-label="Objectives">
        {objectives.map((objective) => (
          <ObjectiveRow key={objective.id} objective={objective} />
        ))}
      </Stack>
      {list.hasNextPage && (
        <Button variant="default" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          Show more
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
      <Button onClick={() => setOpen(true)}>New objective</Button>
      {isOpen && (
        <Dialog title="New objective" onClose={() => setOpen(false)}>
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
          {id} · {key_results.length === 1 ? "1 key result" : `${key_results.length} key results`}
        </Text>
        <ProgressBar label={id} percent={percent} />
      </div>
      <ul className={css.results} aria-label={`Key results of ${id}`}>
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
