import { Paper, Text } from "@mantine/core";
import { duration, type Plotted } from "./plotted";
import css from "./Statistics.module.css";

/** The few numbers that say how it goes. */
export function Figures({ plotted }: { plotted: Plotted }) {
  const sum = (name: "proposed" | "refused" | "denied") =>
    plotted.parts.reduce((total, part) => total + part[name], 0).toLocaleString();
  const numbers: [string, string][] = [
    ["Waiting now", (plotted.parts.at(-1)?.pending ?? 0).toLocaleString()],
    ["Asked", sum("proposed")],
    ["Decided by people", plotted.decisions.toLocaleString()],
    ["Half are decided within", duration(plotted.p50_seconds)],
    ["19 of 20 within", duration(plotted.p95_seconds)],
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
