import { Button, Paper, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "wouter";
import { callApi } from "../../api/client";
import { isAdmin, useMe } from "../../api/currentUser";
import { Choice } from "../../components/Choice";
import { Page } from "../../components/Page";
import { formatDateTime } from "../../components/TimeAgo";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import * as messages from "./messages";
import { Plots } from "./Plots";
import css from "./Statistics.module.css";
import { formatDuration, type StatsHistory } from "./statsHistory";

const LONGEST = "90";

/** Charts of pending calls, decision times, and outcomes. */
export default function Statistics() {
  const me = useMe().data;
  const [params, setParams] = useSearchParams();
  const days = messages.RANGES.find(({ value }) => value === params.get("days"))?.value ?? "7";
  const history = useQuery({
    queryKey: ["plots", days],
    queryFn: ({ signal }) => callApi("get", "/api/stats/history", { query: { days: Number(days) }, signal }),
    refetchInterval: 15_000,
  });
  const range = (
    <Choice
      label={messages.period}
      options={messages.RANGES}
      value={days}
      onChange={(next) => setParams({ days: next }, { replace: true })}
    />
  );
  return (
    <Page title={messages.statistics} actions={range}>
      {history.isPending && <Loading label={messages.loadingStatistics} />}
      {history.error && <ErrorMessage error={history.error} onRetry={() => void history.refetch()} />}
      {history.data && <Figures history={history.data} />}
      {history.data && isEmpty(history.data) ? (
        <EmptyState
          title={messages.noData}
          action={
            days !== LONGEST ? (
              <Button variant="default" onClick={() => setParams({ days: LONGEST }, { replace: true })}>
                {messages.show90Days}
              </Button>
            ) : (
              isAdmin(me) && (
                <Button component={Link} href="/connect">
                  {messages.connectAgent}
                </Button>
              )
            )
          }
        >
          {messages.chartsAppear}
        </EmptyState>
      ) : (
        history.data && <Plots plotted={history.data} />
      )}
    </Page>
  );
}

function isEmpty({ parts, tools, reads, waiting }: StatsHistory): boolean {
  return (
    !tools.length && !reads.length && !waiting.length && parts.every((part) => !part.denied && !part.pending)
  );
}

/** The key figures. */
function Figures({ history }: { history: StatsHistory }) {
  const sum = (name: "proposed" | "refused" | "denied") =>
    history.parts.reduce((total, part) => total + part[name], 0).toLocaleString("en");
  const numbers: [string, string][] = [
    [messages.pendingNow, (history.parts.at(-1)?.pending ?? 0).toLocaleString("en")],
    [messages.requested, sum("proposed")],
    [messages.decidedByPeople, history.decisions.toLocaleString("en")],
    [messages.medianTimeToDecide, formatDuration(history.p50_seconds)],
    [messages.percentile95, formatDuration(history.p95_seconds)],
    [messages.refusedDecisions, sum("refused")],
  ];
  return (
    <>
      <Paper withBorder component="dl" className={css.figures}>
        {numbers.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </Paper>
      {!history.complete && <Text size="sm">{messages.tooMuchData(formatDateTime(history.since))}</Text>}
    </>
  );
}
