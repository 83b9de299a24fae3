export interface Line {
  kind: "same" | "added" | "removed";
  text: string;
  /** Its number in the old and in the new text, counted from 1. */
  old: number | null;
  new: number | null;
}

export interface Hunk {
  lines: Line[];
  /** Equal lines before it that are left out. */
  skipped: number;
}

const MOST = 4_000_000; // cells of the table; beyond that, all of the middle counts as changed

/** Line by line, the fewest that were taken out and put in. */
export function lineDiff(before: string, after: string): Line[] {
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
export function hunks(lines: Line[], around = 3): Hunk[] {
  const near = lines.map(() => false);
  lines.forEach((line, at) => {
    if (line.kind !== "same") near.fill(true, Math.max(0, at - around), at + around + 1);
  });
  const found: Hunk[] = [];
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

type Kind = Line["kind"];

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

function numbered(kinds: Kind[], old: string[], now: string[]): Line[] {
  let [o, n] = [0, 0];
  return kinds.map((kind) => {
    const text = (kind === "added" ? now[n] : old[o]) ?? "";
    if (kind !== "added") o += 1;
    if (kind !== "removed") n += 1;
    return { kind, text, old: kind === "added" ? null : o, new: kind === "removed" ? null : n };
  });
}
