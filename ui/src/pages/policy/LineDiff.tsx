import { Text } from "@mantine/core";
import { useMemo } from "react";
import css from "./Policy.module.css";
import * as messages from "./tabMessages";

const SIGNS: Record<DiffLine["kind"], [sign: string, screenReaderText: string]> = {
  same: [" ", ""],
  added: ["+", "added: "],
  removed: ["−", "removed: "],
};

/** A line diff; unchanged lines far from a change are left out. */
export function LineDiff({ before, after, label }: { before: string; after: string; label: string }) {
  const found = useMemo(() => makeHunks(diffLines(before, after)), [before, after]);
  if (!found.length)
    return (
      <Text size="sm" c="dimmed">
        {messages.noDifferences}
      </Text>
    );
  return (
    <div className={css.diff} role="region" aria-label={label} tabIndex={0}>
      {found.map(({ lines, skipped }, at) => (
        <div key={at}>
          {skipped > 0 && <div className={css.skipped}>{messages.unchangedLines(skipped)}</div>}
          {lines.map((line, number) => (
            <Row key={number} line={line} />
          ))}
        </div>
      ))}
    </div>
  );
}

function Row({ line }: { line: DiffLine }) {
  const [sign, screenReaderText] = SIGNS[line.kind];
  return (
    <div className={css.line} data-kind={line.kind}>
      <span className={css.number} aria-hidden>
        {line.new ?? line.old}
      </span>
      <span aria-hidden>{sign}</span>
      <span>
        {screenReaderText && <span className={css.spoken}>{screenReaderText}</span>}
        {line.text}
      </span>
    </div>
  );
}

interface DiffLine {
  kind: "same" | "added" | "removed";
  text: string;
  /** Its line numbers in the old and in the new text, from 1. */
  old: number | null;
  new: number | null;
}

interface DiffHunk {
  lines: DiffLine[];
  /** Unchanged lines left out before it. */
  skipped: number;
}

const MAX_CELLS = 4_000_000; // table cells; beyond that, the whole middle counts as changed

/** The smallest set of removed and added lines. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [old, now] = [split(before), split(after)];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail))
    tail += 1;
  const middle = diffMiddle(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
  const kinds = [...Array<Kind>(head).fill("same"), ...middle, ...Array<Kind>(tail).fill("same")];
  return numberLines(kinds, old, now);
}

/** The changes with a few unchanged lines around them. */
export function makeHunks(lines: DiffLine[], around = 3): DiffHunk[] {
  const isNear = lines.map(() => false);
  lines.forEach((line, at) => {
    if (line.kind !== "same") isNear.fill(true, Math.max(0, at - around), at + around + 1);
  });
  const found: DiffHunk[] = [];
  let skipped = 0;
  lines.forEach((line, at) => {
    if (!isNear[at]) skipped += 1;
    else if (isNear[at - 1]) found.at(-1)?.lines.push(line);
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

function diffMiddle(old: string[], now: string[]): Kind[] {
  if (old.length * now.length > MAX_CELLS)
    return [...old.map(() => "removed" as const), ...now.map(() => "added" as const)];
  const width = now.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  for (let o = old.length - 1; o >= 0; o -= 1)
    for (let n = now.length - 1; n >= 0; n -= 1)
      common[o * width + n] =
        old[o] === now[n]
          ? (common[(o + 1) * width + n + 1] ?? 0) + 1
          : Math.max(common[(o + 1) * width + n] ?? 0, common[o * width + n + 1] ?? 0);
  return backtrack(old, now, common, width);
}

function backtrack(old: string[], now: string[], common: Uint32Array, width: number): Kind[] {
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

function numberLines(kinds: Kind[], old: string[], now: string[]): DiffLine[] {
  let [o, n] = [0, 0];
  return kinds.map((kind) => {
    const text = (kind === "added" ? now[n] : old[o]) ?? "";
    if (kind !== "added") o += 1;
    if (kind !== "removed") n += 1;
    return { kind, text, old: kind === "added" ? null : o, new: kind === "removed" ? null : n };
  });
}
