import { SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { call } from "../../api/client";
import { Page } from "../../components/Page";
import { Empty, Loading, Problem } from "../../components/States";
import { Figures } from "./Figures";
import { Plots } from "./Plots";
import type { Plotted } from "./plotted";

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
    queryFn: ({ signal }) => call("get", "/api/stats/history", { query: { days: Number(days) }, signal }),
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
      {plotted.error && <Problem error={plotted.error} again={() => void plotted.refetch()} />}
      {plotted.data && <Figures plotted={plotted.data} />}
      {plotted.data && isEmpty(plotted.data) ? (
        <Empty title="Nothing happened in this time">Plots appear once agents ask for something.</Empty>
      ) : (
        plotted.data && <Plots plotted={plotted.data} />
      )}
    </Page>
  );
}

function isEmpty({ parts, tools, reads, waiting }: Plotted): boolean {
  return (
    !tools.length && !reads.length && !waiting.length && parts.every((part) => !part.denied && !part.pending)
  );
}
