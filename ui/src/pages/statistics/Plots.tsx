import { Paper, Stack, Table, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import * as messages from "./messages";
import css from "./Statistics.module.css";
import {
  describePending,
  describeShares,
  describeTimes,
  formatDuration,
  listIntervals,
  listWaiting,
  OUTCOMES,
  withOutcomes,
  type OutcomeCounts,
  type StatsHistory,
} from "./statsHistory";
import { BarChart, pickMarks, TimeChart } from "./TimeChart";

/** All of them; colours are those of the module's styles. */
export function Plots({ plotted }: { plotted: StatsHistory }) {
  return (
    <div className={css.plots}>
      <Pending plotted={plotted} />
      <Times plotted={plotted} />
      <Shares title={messages.outcomesByTool} shares={plotted.tools} of={messages.tool} />
      <Shares title={messages.outcomesByAgent} shares={plotted.agents} of={messages.agent} />
      <WhoWaits plotted={plotted} />
      <Refused plotted={plotted} />
      <Reads plotted={plotted} />
    </div>
  );
}

function Pending({ plotted }: { plotted: StatsHistory }) {
  const data = listIntervals(plotted);
  const values = data.map(({ pending }) => pending);
  const marks = pickMarks(values, (place, isLast) => {
    const count = (values[place] ?? 0).toLocaleString("en");
    return isLast ? messages.countNow(count) : `${count}, ${data[place]?.time}`;
  });
  return (
    <Plot
      title={messages.pendingOverTime}
      says={describePending(data)}
      head={[messages.from, messages.pendingAtEnd, messages.requested]}
      rows={data.map((part) => [part.time, part.pending, part.proposed])}
    >
      <TimeChart
        shape="area"
        times={data.map(({ time }) => time)}
        lines={[{ label: messages.pending, color: "var(--approved)", values }]}
        marks={marks}
      />
    </Plot>
  );
}

function Times({ plotted }: { plotted: StatsHistory }) {
  const data = listIntervals(plotted);
  return (
    <Plot
      title={messages.timeToDecide}
      says={describeTimes(plotted)}
      head={[messages.from, messages.decisions, messages.medianP50, messages.percentile95WithSign]}
      rows={data
        .filter((part) => part.decisions)
        .map((part) => [
          part.time,
          part.decisions,
          formatDuration(part.p50_seconds),
          formatDuration(part.p95_seconds),
        ])}
    >
      <TimeChart
        shape="line"
        times={data.map(({ time }) => time)}
        format={formatDuration}
        lines={[
          {
            label: messages.p50,
            color: "var(--approved)",
            values: data.map((part) => part.p50_seconds),
          },
          {
            label: messages.p95,
            color: "var(--responded)",
            values: data.map((part) => part.p95_seconds),
            dashed: true,
          },
        ]}
      />
    </Plot>
  );
}

function Shares({ title, shares, of }: { title: string; shares: OutcomeCounts[]; of: string }) {
  const data = withOutcomes(shares);
  const used = OUTCOMES.filter(({ name }) => data.some((share) => share[name] > 0));
  return (
    <Plot
      title={title}
      says={describeShares(data, of.toLowerCase())}
      head={[of, ...used.map(({ label }) => label), messages.total]}
      rows={data.map((share) => [share.name, ...used.map(({ name }) => share[name]), share.total])}
    >
      <BarChart
        length="share"
        bars={data.map((share) => ({
          name: share.name,
          parts: used.map(({ name, label, color }) => ({
            label,
            color,
            value: share[name],
            isLabelled: name === "approved" || name === "rejected",
          })),
        }))}
      />
    </Plot>
  );
}

function WhoWaits({ plotted }: { plotted: StatsHistory }) {
  const data = listWaiting(plotted);
  const first = data[0];
  const most = first ? messages.mostAreWaitingFor(first.on, first.pending, formatDuration(first.oldest)) : "";
  return (
    <Plot
      title={messages.pendingByApprover}
      says={messages.pendingByApproverHelp(most)}
      head={[messages.approver, messages.calls, messages.oldest, messages.agents]}
      rows={data.map((each) => [each.on, each.pending, formatDuration(each.oldest), each.agents])}
    >
      <BarChart
        length="count"
        bars={data.map(({ on, pending, oldest }) => ({
          name: on,
          parts: [{ label: messages.pendingCalls, color: "var(--approved)", value: pending }],
          says: messages.pendingAndOldest(pending, formatDuration(oldest)),
        }))}
      />
    </Plot>
  );
}

function Refused({ plotted }: { plotted: StatsHistory }) {
  const data = listIntervals(plotted);
  const rows = data.filter((part) => part.refused || part.denied);
  return (
    <Plot
      title={messages.refused}
      says={messages.refusedHelp}
      head={[messages.from, messages.refusedDecisions, messages.deniedCalls]}
      rows={rows.map((part) => [part.time, part.refused, part.denied])}
    >
      <TimeChart
        shape="columns"
        times={data.map(({ time }) => time)}
        lines={[
          {
            label: messages.refusedDecisions,
            color: "var(--rejected)",
            values: data.map((part) => part.refused),
          },
          { label: messages.deniedCalls, color: "var(--expired)", values: data.map((part) => part.denied) },
        ]}
      />
    </Plot>
  );
}

function Reads({ plotted }: { plotted: StatsHistory }) {
  const data = plotted.reads.slice(0, 20);
  return (
    <Plot
      title={messages.allowedReads}
      says={messages.allowedReadsHelp}
      head={[messages.tool, messages.reads]}
      rows={data.map(({ tool, count }) => [tool, count])}
    >
      <BarChart
        length="count"
        bars={data.map(({ tool, count }) => ({
          name: tool,
          parts: [{ label: messages.reads, color: "var(--allowed)", value: count }],
        }))}
      />
    </Plot>
  );
}

interface PlotProps {
  title: string;
  /** What the plot shows, in a sentence: for those who do not see it, and for those who wonder. */
  says: string;
  head: string[];
  rows: (string | number)[][];
  children: ReactNode;
}

/** A plot with its words and the same numbers as a table. */
function Plot({ title, says, head, rows, children }: PlotProps) {
  const isNumeric = (column: number) => typeof rows[0]?.[column] === "number";
  return (
    <Paper withBorder p="md" component="section" aria-label={title}>
      <Stack gap="xs">
        <Title order={2} size="h5">
          {title}
        </Title>
        <Text size="sm">{says}</Text>
        {rows.length > 0 ? (
          <div role="img" aria-label={`${title}. ${says}`}>
            {children}
          </div>
        ) : (
          <Text size="sm" fs="italic">
            {messages.noDataSentence}
          </Text>
        )}
        {rows.length > 0 && (
          <details className={css.fold}>
            <summary>{messages.showAsTable}</summary>
            <div className={css.scroll} tabIndex={0} role="group" aria-label={messages.asTable(title)}>
              <Table stickyHeader>
                <Table.Thead>
                  <Table.Tr>
                    {head.map((name, column) => (
                      <Table.Th key={name} scope="col" ta={isNumeric(column) ? "right" : undefined}>
                        {name}
                      </Table.Th>
                    ))}
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {rows.map((row, place) => (
                    <Table.Tr key={place}>
                      {row.map((cell, column) => (
                        <Table.Td key={column} ta={isNumeric(column) ? "right" : undefined}>
                          {typeof cell === "number" ? cell.toLocaleString("en") : cell}
                        </Table.Td>
                      ))}
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </div>
          </details>
        )}
      </Stack>
    </Paper>
  );
}
