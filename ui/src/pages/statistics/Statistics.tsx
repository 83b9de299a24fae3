import { Paper, SegmentedControl, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { callApi } from "../../api/client";
import { Page } from "../../components/Page";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { Plots } from "./Plots";
import css from "./Statistics.module.css";
import { formatDuration, type StatsHistory } from "./statsHistory";

const RANGES = [
  { value: "1", label: "24 h" },
  { value: "7", label: "7 d" },
  { value: "30", label: "30 d" },
  { value: "90", label: "90 d" },
];

/** How people and agents get along: what waits, how long it takes, and how it ends. */
export default function Statistics() {
  const [params, setParams] = useSearchParams();
  const days = RANGES.find(({ value }) => value === params.get("days"))?.value ?? "7";
  const plotted = useQuery({
    queryKey: ["plots", days],
    queryFn: ({ signal }) => callApi("get", "/api/stats/history", { query: { days: Number(days) }, signal }),
    refetchInterval: 15_000,
  });
  const range = (
    <SegmentedControl
      aria-label="How far back"
      data={RANGES}
      value={days}
      onChange={(next) => setParams({ days: next }, { replace: true })}
    />
  );
  return (
    <Page title="Statistics" actions={range}>
      {plotted.isPending && <Loading what="Counting" />}
      {plotted.error && <ErrorMessage error={plotted.error} again={() => void plotted.refetch()} />}
      {plotted.data && <Figures plotted={plotted.data} />}
      {plotted.data && isEmpty(plotted.data) ? (
        <EmptyState title="Nothing happened in this time">
          Plots appear once agents ask for something.
        </EmptyState>
      ) : (
        plotted.data && <Plots plotted={plotted.data} />
      )}
    </Page>
  );
}

function isEmpty({ parts, tools, reads, waiting }: StatsHistory): boolean {
  return (
    !tools.length && !reads.length && !waiting.length && parts.every((part) => !part.denied && !part.pending)
  );
}

/** The few numbers that say how it goes. */
function Figures({ plotted }: { plotted: StatsHistory }) {
  const sum = (name: "proposed" | "refused" | "denied") =>
    plotted.parts.reduce((total, part) => total + part[name], 0).toLocaleString();
  const numbers: [string, string][] = [
    ["Waiting now", (plotted.parts.at(-1)?.pending ?? 0).toLocaleString()],
    ["Asked", sum("proposed")],
    ["Decided by people", plotted.decisions.toLocaleString()],
    ["Half are decided within", formatDuration(plotted.p50_seconds)],
    ["19 of 20 within", formatDuration(plotted.p95_seconds)],
    ["Refused attempts", sum("refused")],
  ];
  return (
    <>
      <dl className={css.figures}>
        {numbers.map(([label, value]) => (
          <Paper key={label} withBorder p="sm">
            <dt>{label}</dt>
            <dd>{value}</dd>
          </Paper>
        ))}
      </dl>
      {!plotted.complete && (
        <Text size="sm">
          So much happened that only what came after {new Date(plotted.since).toLocaleString()} is counted.
        </Text>
      )}
    </>
  );
}
