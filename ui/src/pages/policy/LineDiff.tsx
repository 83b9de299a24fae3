import { Text } from "@mantine/core";
import { useMemo } from "react";
import css from "./Policy.module.css";

const SIGNS: Record<DiffLine["kind"], [sign: string, spoken: string]> = {
  same: [" ", ""],
  added: ["+", "added: "],
  removed: ["−", "removed: "],
};

/** Two texts, line by line; what is equal and far from a change is left out. */
export function LineDiff({ before, after, label }: { before: string; after: string; label: string }) {
  const found = useMemo(() => makeHunks(diffLines(before, after)), [before, after]);
  if (!found.length)
    return (
      <Text size="sm" c="dimmed">
        No differences.
      </Text>
    );
  return (
    <div className={css.diff} role="region" aria-label={label} tabIndex={0}>
      {found.map(({ lines, skipped }, at) => (
        <div key={at}>
          {skipped > 0 && (
            <div className={css.skipped}>
              {skipped === 1 ? "1 unchanged line" : `${skipped} unchanged lines`}
            </div>
          )}
          {lines.map((line, number) => (
            <Row key={number} line={line} />
          ))}
        </div>
      ))}
    </div>
  );
}

function Row({ line }: { line: DiffLine }) {
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

interface DiffLine {
  kind: "same" | "added" | "removed";
  text: string;
  /** Its number in the old and in the new text, counted from 1. */
  old: number | null;
  new: number | null;
}

interface DiffHunk {
  lines: DiffLine[];
  /** Equal lines before it that are left out. */
  skipped: number;
}

const MOST = 4_000_000; // cells of the table; beyond that, all of the middle counts as changed

/** Line by line, the fewest that were taken out and put in. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [old, now] = [split(before), split(after)];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail))
    tail += 1;
  const middle = between(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
  const kinds = [...Array<Kind>(head).fill("same"), ...middle, ...Array<Kind>(tail).fill("same")];
  return numbered(kinds, old, now);
}

/** What changed, with a few equal lines around it. */
export function makeHunks(lines: DiffLine[], around = 3): DiffHunk[] {
  const near = lines.map(() => false);
  lines.forEach((line, at) => {
    if (line.kind !== "same") near.fill(true, Math.max(0, at - around), at + around + 1);
  });
  const found: DiffHunk[] = [];
  let skipped = 0;
  lines.forEach((line, at) => {
    if (!near[at]) skipped += 1;
    else if (near[at - 1]) found.at(-1)?.lines.push(line);
    else {
      found.push({ lines: [line], skipped });
      skipped = 0;
    }
  });
  return found;
}

type Kind = DiffLine["kind"];

function split(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function between(old: string[], now: string[]): Kind[] {
  if (old.length * now.length > MOST)
    return [...old.map(() => "removed" as const), ...now.map(() => "added" as const)];
  const width = now.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  for (let o = old.length - 1; o >= 0; o -= 1)
    for (let n = now.length - 1; n >= 0; n -= 1)
      common[o * width + n] =
        old[o] === now[n]
          ? (common[(o + 1) * width + n + 1] ?? 0) + 1
          : Math.max(common[(o + 1) * width + n] ?? 0, common[o * width + n + 1] ?? 0);
  return walked(old, now, common, width);
}

function walked(old: string[], now: string[], common: Uint32Array, width: number): Kind[] {
  const kinds: Kind[] = [];
  let [o, n] = [0, 0];
  while (o < old.length || n < now.length) {
    const same = o < old.length && n < now.length && old[o] === now[n];
    const out =
      o < old.length &&
      (n >= now.length || (common[(o + 1) * width + n] ?? 0) >= (common[o * width + n + 1] ?? 0));
    kinds.push(same ? "same" : out ? "removed" : "added");
    if (same || out) o += 1;
    if (same || !out) n += 1;
  }
  return kinds;
}

function numbered(kinds: Kind[], old: string[], now: string[]): DiffLine[] {
  let [o, n] = [0, 0];
  return kinds.map((kind) => {
    const text = (kind === "added" ? now[n] : old[o]) ?? "";
    if (kind !== "added") o += 1;
    if (kind !== "removed") n += 1;
    return { kind, text, old: kind === "added" ? null : o, new: kind === "removed" ? null : n };
  });
}
