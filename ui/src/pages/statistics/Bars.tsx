import css from "./drawing.module.css";
import { Legend } from "./OverTime";

export interface Bar {
  name: string;
  parts: { label: string; color: string; value: number }[];
  /** What stands behind it; the sum, if left out. */
  says?: string;
}

/** A bar for each name: as long as its share of the longest, or all of the same length and parted by shares. */
export function Bars({ bars, length }: { bars: Bar[]; length: "count" | "share" }) {
  const longest = Math.max(1, ...bars.map(sum));
  const entries = [...new Map(bars.flatMap(({ parts }) => parts.map((part) => [part.label, part]))).values()];
  return (
    <div>
      {entries.length > 1 && <Legend entries={entries} />}
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

const sum = ({ parts }: Bar): number => parts.reduce((total, { value }) => total + value, 0);
