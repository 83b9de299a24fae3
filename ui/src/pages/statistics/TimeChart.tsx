import css from "./TimeChart.module.css";

const ROW = 40; // characters below a chart on a phone

interface ChartLine {
  label: string;
  color: string;
  values: (number | null)[];
  dashed?: boolean;
}

interface OverTimeProps {
  times: string[];
  lines: ChartLine[];
  shape: "line" | "columns";
  format?: (value: number) => string;
}

/** Values over time; drawn to the width that there is, with words beside it and not in the picture. */
export function TimeChart({ times, lines, shape, format = String }: OverTimeProps) {
  const marks = axisTicks(highest(lines, shape), shape === "line" ? "any" : "whole");
  const top = marks.at(-1) ?? 1;
  return (
    <div>
      {lines.length > 1 && <ChartLegend entries={lines} />}
      <div className={css.chart}>
        <div className={css.side}>
          {marks.map((mark) => (
            <span key={mark} style={{ bottom: `${(mark / top) * 100}%` }}>
              {format(mark)}
            </span>
          ))}
        </div>
        <svg className={css.field} viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden>
          {marks.map((mark) => (
            <path key={mark} className={css.grid} d={`M0 ${100 - (mark / top) * 100}H100`} />
          ))}
          {shape === "columns" ? (
            <Columns lines={lines} top={top} />
          ) : (
            lines.map((line) => <Drawn key={line.label} line={line} top={top} />)
          )}
        </svg>
        <div className={css.below}>
          {pickLabels(times).map(({ label, at }) => (
            <span key={at} style={{ left: `${at * 100}%`, transform: `translateX(-${at * 100}%)` }}>
              {label}
            </span>
          ))}
        </div>
      </div>
    </div>
  );
}

function Drawn({ line, top }: { line: ChartLine; top: number }) {
  const last = Math.max(1, line.values.length - 1);
  return (
    <>
      <path
        d={linePath(line.values, top)}
        style={{ stroke: line.color }}
        className={css.line}
        strokeDasharray={line.dashed ? "6 4" : undefined}
      />
      {line.values.map((value, place) =>
        value === null ? null : (
          <path
            key={place}
            d={`M${(place / last) * 100} ${100 - (value / top) * 100}h0`}
            style={{ stroke: line.color }}
            className={css.dot}
          />
        ),
      )}
    </>
  );
}

function Columns({ lines, top }: { lines: ChartLine[]; top: number }) {
  const count = lines[0]?.values.length ?? 0;
  return [...Array(count).keys()].map((place) => {
    let below = 0;
    return lines.map((line) => {
      const value = line.values[place] ?? 0;
      const height = (value / top) * 100;
      below += height;
      return (
        <rect
          key={`${line.label} ${place}`}
          x={((place + 0.15) / count) * 100}
          width={70 / count}
          y={100 - below}
          height={height}
          style={{ fill: line.color }}
        />
      );
    });
  });
}

function ChartLegend({ entries }: { entries: { label: string; color: string }[] }) {
  return (
    <ul className={css.legend} aria-hidden>
      {entries.map(({ label, color }) => (
        <li key={label}>
          <i style={{ background: color }} />
          {label}
        </li>
      ))}
    </ul>
  );
}

function highest(lines: ChartLine[], shape: OverTimeProps["shape"]): number {
  if (shape !== "columns")
    return Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)));
  const sums = (lines[0]?.values ?? []).map((_, place) =>
    lines.reduce((sum, { values }) => sum + (values[place] ?? 0), 0),
  );
  return Math.max(0, ...sums);
}

/** Marks of an axis from 0 to above the highest value: few, round, whole where only whole numbers make sense. */
export function axisTicks(highest: number, whole: "whole" | "any" = "whole"): number[] {
  if (highest <= 0) return [0, 1];
  const rough = highest / 4;
  const size = 10 ** Math.floor(Math.log10(rough));
  const round = [1, 2, 5, 10].map((each) => each * size).find((each) => each >= rough) ?? rough;
  const step = whole === "whole" ? Math.max(1, Math.ceil(round)) : round;
  return Array.from({ length: Math.ceil(highest / step) + 1 }, (_, place) => place * step);
}

/** A few of many labels, the first and the last among them: as many as stand side by side on a phone. */
export function pickLabels(labels: string[]): { label: string; at: number }[] {
  const longest = Math.max(1, ...labels.map((label) => label.length));
  const most = Math.max(2, Math.min(4, Math.floor(ROW / longest)));
  const last = labels.length - 1;
  const places =
    labels.length <= most ? [...labels.keys()] : [...Array(most).keys()].map((n) => (n * last) / (most - 1));
  return [...new Set(places.map(Math.round))].map((place) => ({
    label: labels[place]!,
    at: last > 0 ? place / last : 0.5,
  }));
}

/** Points of a line; where there is no value the line goes on from the next one. */
export function linePath(values: (number | null)[], top: number): string {
  const last = Math.max(1, values.length - 1);
  const points = values.flatMap((value, place) =>
    value === null ? [] : [`${(place / last) * 100} ${100 - (value / top) * 100}`],
  );
  return points.length ? `M${points.join("L")}` : "";
}

interface ChartBar {
  name: string;
  parts: { label: string; color: string; value: number }[];
  /** What stands behind it; the sum, if left out. */
  says?: string;
}

/** A bar for each name: as long as its share of the longest, or all of the same length and parted by shares. */
export function BarChart({ bars, length }: { bars: ChartBar[]; length: "count" | "share" }) {
  const longest = Math.max(1, ...bars.map(sum));
  const entries = [...new Map(bars.flatMap(({ parts }) => parts.map((part) => [part.label, part]))).values()];
  return (
    <div>
      {entries.length > 1 && <ChartLegend entries={entries} />}
      <div className={css.bars}>
        {bars.map((bar) => (
          <div key={bar.name} className={css.bar}>
            <span className={css.name}>{bar.name}</span>
            <span className={css.track}>
              {bar.parts.map(({ label, color, value }) => (
                <i
                  key={label}
                  title={`${label}: ${value.toLocaleString()}`}
                  style={{
                    background: color,
                    width: `${(value / (length === "share" ? sum(bar) : longest)) * 100}%`,
                  }}
                />
              ))}
            </span>
            <span className={css.total}>{bar.says ?? sum(bar).toLocaleString()}</span>
          </div>
        ))}
      </div>
    </div>
  );
}

const sum = ({ parts }: ChartBar): number => parts.reduce((total, { value }) => total + value, 0);
