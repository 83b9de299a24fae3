import css from "./TimeChart.module.css";

const ROW = 40; // characters below a chart on a phone
const LABEL_HEIGHT = 11; // % of a chart
const MARK_WIDTH = 0.4; // of a chart on a phone
const MARK_HEIGHT = 0.2;
const LABELLED_SHARE = 0.22; // of a bar: a number fits into it on a phone

interface ChartLine {
  label: string;
  color: string;
  values: (number | null)[];
  dashed?: boolean;
}

interface OverTimeProps {
  times: string[];
  lines: ChartLine[];
  shape: "line" | "columns" | "area";
  format?: (value: number) => string;
  /** Points of the first line that say what they are; see pickMarks. */
  marks?: ChartMark[];
}

export interface ChartMark {
  place: number;
  text: string;
}

/** Values over time; drawn to the width that there is, with words beside it and not in the picture. */
export function TimeChart({ times, lines, shape, format = String, marks = [] }: OverTimeProps) {
  const ticks = axisTicks(highest(lines, shape), shape === "line" ? "any" : "whole");
  const top = ticks.at(-1) ?? 1;
  return (
    <div>
      {shape === "columns" && lines.length > 1 && <ChartLegend entries={lines} />}
      <div className={css.chart} data-shape={shape}>
        <div className={css.side}>
          {ticks.map((tick) => (
            <span key={tick} style={{ bottom: `${(tick / top) * 100}%` }}>
              {format(tick)}
            </span>
          ))}
        </div>
        <svg className={css.field} viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden>
          {ticks.map((tick) => (
            <path key={tick} className={css.grid} d={`M0 ${100 - (tick / top) * 100}H100`} />
          ))}
          {shape === "columns" && <Columns lines={lines} top={top} />}
          {shape === "area" && <path className={css.area} d={areaPath(lines[0]?.values ?? [], top)} />}
          {shape !== "columns" &&
            lines.map((line) => <Drawn key={line.label} line={line} top={top} dots={shape === "line"} />)}
        </svg>
        <div className={css.field}>
          {marks.map((mark) => (
            <PointMark key={mark.place} mark={mark} values={lines[0]?.values ?? []} top={top} />
          ))}
        </div>
        {shape === "line" && <EndLabels lines={lines} top={top} format={format} />}
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

function PointMark({
  mark: { place, text },
  values,
  top,
}: {
  mark: ChartMark;
  values: ChartLine["values"];
  top: number;
}) {
  const at = (place / Math.max(1, values.length - 1)) * 100;
  const bottom = `${((values[place] ?? 0) / top) * 100}%`;
  return (
    <>
      <i className={css.point} style={{ left: `${at}%`, bottom }} />
      <span className={css.mark} style={{ left: `${at}%`, bottom, transform: `translateX(-${at}%)` }}>
        {text}
      </span>
    </>
  );
}

/** The name and the last value of each line, beside its end; the upper one keeps its distance. */
function EndLabels({
  lines,
  top,
  format,
}: {
  lines: ChartLine[];
  top: number;
  format: (value: number) => string;
}) {
  const ends = lines.flatMap(({ label, color, values }) => {
    const value = values.findLast((each) => each !== null);
    return value === undefined || value === null ? [] : [{ label, color, value }];
  });
  let lowest = 0;
  return (
    <div className={css.ends}>
      {ends
        .sort((one, other) => one.value - other.value)
        .map(({ label, color, value }) => {
          const bottom = Math.max(lowest, (value / top) * 100);
          lowest = bottom + LABEL_HEIGHT;
          return (
            <span key={label} style={{ bottom: `${bottom}%` }}>
              <i style={{ background: color }} /> {label} · {format(value)}
            </span>
          );
        })}
    </div>
  );
}

function Drawn({ line, top, dots }: { line: ChartLine; top: number; dots: boolean }) {
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
        value === null || !dots ? null : (
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

/** The highest of the values and the last one, if their words do not cover each other. */
export function pickMarks(values: number[], textOf: (place: number, isLast: boolean) => string): ChartMark[] {
  const last = values.length - 1;
  const most = Math.max(0, ...values);
  if (most === 0) return [];
  const peak = values.lastIndexOf(most);
  const mark = (place: number) => ({ place, text: textOf(place, place === last) });
  if (peak === last) return [mark(last)];
  const isNear = (last - peak) / last < MARK_WIDTH && (most - values[last]!) / most < MARK_HEIGHT;
  return isNear ? [mark(peak)] : [mark(peak), mark(last)];
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

/** The field below a line. */
export function areaPath(values: (number | null)[], top: number): string {
  const line = linePath(values, top);
  return line && `${line}L100 100L0 100Z`;
}

interface ChartBar {
  name: string;
  parts: { label: string; color: string; value: number; isLabelled?: boolean }[];
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
              {bar.parts
                .filter(({ value }) => value > 0)
                .map(({ label, color, value, isLabelled }) => {
                  const share = value / (length === "share" ? sum(bar) : longest);
                  return (
                    <i
                      key={label}
                      title={`${label}: ${value.toLocaleString("en")}`}
                      style={{ background: color, width: `${share * 100}%` }}
                    >
                      {isLabelled && share >= LABELLED_SHARE && `${Math.round(share * 100)} %`}
                    </i>
                  );
                })}
            </span>
            <span className={css.total}>{bar.says ?? sum(bar).toLocaleString("en")}</span>
          </div>
        ))}
      </div>
    </div>
  );
}

const sum = ({ parts }: ChartBar): number => parts.reduce((total, { value }) => total + value, 0);
