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
      aria-label="Period"
      data={RANGES}
      value={days}
      onChange={(next) => setParams({ days: next }, { replace: true })}
    />
  );
  return (
    <Page title="Statistics" actions={range}>
      {plotted.isPending && <Loading what="Loading statistics" />}
      {plotted.error && <ErrorMessage error={plotted.error} again={() => void plotted.refetch()} />}
      {plotted.data && <Figures plotted={plotted.data} />}
      {plotted.data && isEmpty(plotted.data) ? (
        <EmptyState title="No data in this period">Charts appear once agents request approvals.</EmptyState>
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
    ["Pending now", (plotted.parts.at(-1)?.pending ?? 0).toLocaleString()],
    ["Requested", sum("proposed")],
    ["Decided by people", plotted.decisions.toLocaleString()],
    ["Median time to decide", formatDuration(plotted.p50_seconds)],
    ["95th percentile", formatDuration(plotted.p95_seconds)],
    ["Refused decisions", sum("refused")],
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
          There is too much data: only events after {new Date(plotted.since).toLocaleString()} are counted.
        </Text>
      )}
    </>
  );
}
