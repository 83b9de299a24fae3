import * as messages from "./messages";
import css from "./RiskMark.module.css";

export type RiskLevel = "low" | "medium" | "high" | "destructive" | "question";

/** The level of what the server says; what cannot be undone has a shape of its own. */
export function riskLevelOf(risk: string, effect: string): RiskLevel {
  if (risk === "high") return effect === "destructive" ? "destructive" : "high";
  return risk === "low" ? "low" : "medium";
}

/** The risk as a shape, so that it can be told apart without color: circle, diamond, triangle, octagon. */
export function RiskMark({ risk, size = 16 }: { risk: RiskLevel; size?: number }) {
  return (
    <svg
      className={css.mark}
      data-risk={risk}
      width={size}
      height={size}
      viewBox="0 0 16 16"
      role="img"
      aria-label={messages.LABELS[risk]}
    >
      {SHAPES[risk]}
    </svg>
  );
}

/** The same shape with its name. */
export function RiskLabel({ risk }: { risk: RiskLevel }) {
  return (
    <span className={css.label} data-risk={risk}>
      <span aria-hidden="true" className={css.icon}>
        <RiskMark risk={risk} />
      </span>
      {messages.LABELS[risk]}
    </span>
  );
}

const SHAPES = {
  low: <circle cx="8" cy="8" r="4.4" />,
  medium: <rect x="3.6" y="3.6" width="8.8" height="8.8" rx="1.6" transform="rotate(45 8 8)" />,
  high: (
    <>
      <path d="M8 1.6 15 14H1z" className={css.rounded} />
      <path d="M8 6v4" className={css.sign} />
      <circle cx="8" cy="12" r="0.9" className={css.dot} />
    </>
  ),
  destructive: (
    <>
      <path d="M5 1h6l4 4v6l-4 4H5l-4-4V5z" />
      <path d="m5.6 5.6 4.8 4.8m0-4.8-4.8 4.8" className={css.sign} />
    </>
  ),
  question: (
    <>
      <circle cx="8" cy="8" r="6.6" className={css.ring} />
      <path d="M6.2 6.3a1.9 1.9 0 1 1 2.6 1.8c-.5.2-.8.5-.8 1v.3" className={css.hook} />
      <circle cx="8" cy="11.4" r="0.9" />
    </>
  ),
};
