import { few, path, ticks } from "./drawing";
import css from "./drawing.module.css";

export interface Line {
  label: string;
  color: string;
  values: (number | null)[];
  dashed?: boolean;
}

interface OverTimeProps {
  times: string[];
  lines: Line[];
  shape: "area" | "line" | "columns";
  format?: (value: number) => string;
}

/** Values over time; drawn to the width that there is, with words beside it and not in the picture. */
export function OverTime({ times, lines, shape, format = String }: OverTimeProps) {
  const marks = ticks(highest(lines, shape), shape === "line" ? "any" : "whole");
  const top = marks.at(-1) ?? 1;
  return (
    <div>
      {lines.length > 1 && <Legend entries={lines} />}
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
            lines.map((line) => <Drawn key={line.label} line={line} top={top} shape={shape} />)
          )}
        </svg>
        <div className={css.below}>
          {few(times).map(({ label, at }) => (
            <span key={at} style={{ left: `${at * 100}%`, transform: `translateX(-${at * 100}%)` }}>
              {label}
            </span>
          ))}
        </div>
      </div>
    </div>
  );
}

function Drawn({ line, top, shape }: { line: Line; top: number; shape: "area" | "line" }) {
  const d = path(line.values, top, shape === "area" ? "steps" : "straight");
  const last = Math.max(1, line.values.length - 1);
  return (
    <>
      {shape === "area" && d && <path d={`${d}V100H0Z`} style={{ fill: line.color }} className={css.area} />}
      <path
        d={d}
        style={{ stroke: line.color }}
        className={css.line}
        strokeDasharray={line.dashed ? "6 4" : undefined}
      />
      {shape === "line" &&
        line.values.map((value, place) =>
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

function Columns({ lines, top }: { lines: Line[]; top: number }) {
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

export function Legend({ entries }: { entries: { label: string; color: string }[] }) {
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

function highest(lines: Line[], shape: OverTimeProps["shape"]): number {
  if (shape !== "columns")
    return Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)));
  const sums = (lines[0]?.values ?? []).map((_, place) =>
    lines.reduce((sum, { values }) => sum + (values[place] ?? 0), 0),
  );
  return Math.max(0, ...sums);
}
