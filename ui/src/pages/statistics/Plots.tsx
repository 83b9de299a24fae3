import { Bars } from "./Bars";
import { OverTime } from "./OverTime";
import { Plot } from "./Plot";
import { duration, ENDS, overTime, waits, withEnds, type Plotted, type Share } from "./plotted";
import css from "./Statistics.module.css";

/** All of them; colours are those of the module's styles. */
export function Plots({ plotted }: { plotted: Plotted }) {
  return (
    <div className={css.plots}>
      <Pending plotted={plotted} />
      <Times plotted={plotted} />
      <Shares title="How calls end, by tool" shares={plotted.tools} of="Tool" />
      <Shares title="How calls end, by agent" shares={plotted.agents} of="Agent" />
      <WhoWaits plotted={plotted} />
      <Refused plotted={plotted} />
      <Reads plotted={plotted} />
    </div>
  );
}

function Pending({ plotted }: { plotted: Plotted }) {
  const data = overTime(plotted);
  const most = Math.max(0, ...data.map((part) => part.pending));
  return (
    <Plot
      title="Waiting over time"
      says={`How many calls waited for people; ${most.toLocaleString()} at most.`}
      head={["From", "Waiting at the end", "Asked"]}
      rows={data.map((part) => [part.time, part.pending, part.proposed])}
    >
      <OverTime
        shape="columns"
        times={data.map(({ time }) => time)}
        lines={[{ label: "Waiting", color: "var(--approved)", values: data.map(({ pending }) => pending) }]}
      />
    </Plot>
  );
}

function Times({ plotted }: { plotted: Plotted }) {
  const data = overTime(plotted);
  return (
    <Plot
      title="Time to decide"
      says={`Half of the decisions took at most ${duration(plotted.p50_seconds)}, 19 of 20 at most ${duration(plotted.p95_seconds)}.`}
      head={["From", "Decisions", "Half within (p50)", "19 of 20 within (p95)"]}
      rows={data
        .filter((part) => part.decisions)
        .map((part) => [part.time, part.decisions, duration(part.p50_seconds), duration(part.p95_seconds)])}
    >
      <OverTime
        shape="line"
        times={data.map(({ time }) => time)}
        format={duration}
        lines={[
          {
            label: "Half within (p50)",
            color: "var(--approved)",
            values: data.map((part) => part.p50_seconds),
          },
          {
            label: "19 of 20 within (p95)",
            color: "var(--rejected)",
            values: data.map((part) => part.p95_seconds),
            dashed: true,
          },
        ]}
      />
    </Plot>
  );
}

function Shares({ title, shares, of }: { title: string; shares: Share[]; of: string }) {
  const data = withEnds(shares);
  const used = ENDS.filter(({ name }) => data.some((share) => share[name] > 0));
  return (
    <Plot
      title={title}
      says="Shares of what became of the calls that ended in this time."
      head={[of, ...used.map(({ label }) => label), "In all"]}
      rows={data.map((share) => [share.name, ...used.map(({ name }) => share[name]), share.total])}
    >
      <Bars
        length="share"
        bars={data.map((share) => ({
          name: share.name,
          parts: used.map(({ name, label, color }) => ({ label, color, value: share[name] })),
        }))}
      />
    </Plot>
  );
}

function WhoWaits({ plotted }: { plotted: Plotted }) {
  const data = waits(plotted);
  const first = data[0];
  const most = first
    ? `Most wait for ${first.on}: ${first.pending}, the oldest for ${duration(first.oldest)}.`
    : "";
  return (
    <Plot
      title="Who waits on whom"
      says={`Calls that wait now, by those whose turn it is. ${most}`}
      head={["Whose turn", "Calls", "Oldest", "Agents"]}
      rows={data.map((each) => [each.on, each.pending, duration(each.oldest), each.agents])}
    >
      <Bars
        length="count"
        bars={data.map(({ on, pending, oldest }) => ({
          name: on,
          parts: [{ label: "Calls that wait", color: "var(--edited)", value: pending }],
          says: `${pending.toLocaleString()}, oldest ${duration(oldest)}`,
        }))}
      />
    </Plot>
  );
}

function Refused({ plotted }: { plotted: Plotted }) {
  const data = overTime(plotted);
  const rows = data.filter((part) => part.refused || part.denied);
  return (
    <Plot
      title="Refused"
      says="Attempts to decide that were refused, and calls that the policy denied."
      head={["From", "Refused attempts to decide", "Denied calls"]}
      rows={rows.map((part) => [part.time, part.refused, part.denied])}
    >
      <OverTime
        shape="columns"
        times={data.map(({ time }) => time)}
        lines={[
          {
            label: "Refused attempts to decide",
            color: "var(--rejected)",
            values: data.map((part) => part.refused),
          },
          { label: "Denied calls", color: "var(--expired)", values: data.map((part) => part.denied) },
        ]}
      />
    </Plot>
  );
}

function Reads({ plotted }: { plotted: Plotted }) {
  const data = plotted.reads.slice(0, 20);
  return (
    <Plot
      title="Allowed reads"
      says="Reads that ran without asking, by tool."
      head={["Tool", "Reads"]}
      rows={data.map(({ tool, count }) => [tool, count])}
    >
      <Bars
        length="count"
        bars={data.map(({ tool, count }) => ({
          name: tool,
          parts: [{ label: "Reads", color: "var(--allowed)", value: count }],
        }))}
      />
    </Plot>
  );
}
