import { Text } from "@mantine/core";
import { useMemo } from "react";
import { hunks, lineDiff, type Line } from "./lines";
import css from "./Policy.module.css";

const SIGNS: Record<Line["kind"], [sign: string, spoken: string]> = {
  same: [" ", ""],
  added: ["+", "added: "],
  removed: ["−", "removed: "],
};

/** Two texts, line by line; what is equal and far from a change is left out. */
export function LineDiff({ before, after, label }: { before: string; after: string; label: string }) {
  const found = useMemo(() => hunks(lineDiff(before, after)), [before, after]);
  if (!found.length)
    return (
      <Text size="sm" c="dimmed">
        No line differs.
      </Text>
    );
  return (
    <div className={css.diff} role="region" aria-label={label} tabIndex={0}>
      {found.map(({ lines, skipped }, at) => (
        <div key={at}>
          {skipped > 0 && (
            <div className={css.skipped}>{skipped === 1 ? "1 line" : `${skipped} lines`} as before</div>
          )}
          {lines.map((line, number) => (
            <Row key={number} line={line} />
          ))}
        </div>
      ))}
    </div>
  );
}

function Row({ line }: { line: Line }) {
  const [sign, spoken] = SIGNS[line.kind];
  return (
    <div className={css.line} data-kind={line.kind}>
      <span className={css.number} aria-hidden>
        {line.new ?? line.old}
      </span>
      <span aria-hidden>{sign}</span>
      <span>
        {spoken && <span className={css.spoken}>{spoken}</span>}
        {line.text}
      </span>
    </div>
  );
}
