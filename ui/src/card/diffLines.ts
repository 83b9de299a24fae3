import { splitAtoms } from "./VisibleText";

/** A line of a diff in visible text. */
export interface DiffLine {
  kind: "added" | "removed" | "same" | "file" | "place" | "text";
  text: string;
  old: number | null;
  new: number | null;
  /** Whether a line break follows. */
  ends: boolean;
}

/** A part of a line; `changed` is what differs from the line that it replaces. */
export interface LinePart {
  text: string;
  changed: boolean;
}

/** Lines, or a run of unchanged ones that is folded. */
export type DiffBlock = { lines: DiffLine[]; isFolded: boolean };

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const ABOUT_FILE =
  /^(?:diff --git |index |new file mode |deleted file mode |old mode |new mode |similarity index |rename |copy |--- |\+\+\+ )/;
const NO_NEWLINE = "\\\\ No newline at end of file";
const AROUND = 3; // unchanged lines that are shown next to a change
const MIN_FOLD = 4; // fewer lines are not worth a fold

/**
 * The lines of a unified diff, in visible text. Null if it is none: each line has to be where the numbers of its
 * place say.
 */
export function readDiff(text: string): DiffLine[] | null {
  const lines = splitLines(text);
  const found: DiffLine[] = [];
  let at = 0;
  let hasPlace = false;
  while (at < lines.length) {
    const line = lines[at] as string;
    const place = HUNK.exec(line);
    if (place) {
      hasPlace = true;
      found.push(plainLine("place", line));
      const next = readPlace(lines, at + 1, place, found);
      if (next === null) return null;
      at = next;
    } else {
      const kind = ABOUT_FILE.test(line) ? "file" : "text";
      const isEnd = line === "" && at === lines.length - 1;
      if (kind === "text" && hasPlace && !isEnd) return null;
      if (!isEnd) found.push(plainLine(kind, line));
      at += 1;
    }
  }
  return hasPlace ? markEnds(found, lines) : null;
}

function plainLine(kind: DiffLine["kind"], text: string): DiffLine {
  return { kind, text, old: null, new: null, ends: true };
}

/** Only the last line may have no line break. */
function markEnds(found: DiffLine[], lines: readonly string[]): DiffLine[] {
  const last = found.at(-1);
  if (last && lines.at(-1) !== "") last.ends = false;
  return found;
}

/** The lines of one place in the file; the index after them, or null if they are not as its numbers say. */
function readPlace(
  lines: readonly string[],
  from: number,
  place: RegExpExecArray,
  found: DiffLine[],
): number | null {
  const count = (group: number) => (place[group] === undefined ? 1 : Number(place[group]));
  let [old, now] = [Number(place[1]), Number(place[3])];
  const [oldEnd, newEnd] = [old + count(2), now + count(4)];
  let at = from;
  while (old < oldEnd || now < newEnd || lines[at] === NO_NEWLINE) {
    const line = lines[at];
    if (line === undefined) return null;
    at += 1;
    const text = line.slice(1);
    if (line === NO_NEWLINE) found.push(plainLine("text", line));
    else if (line.startsWith("+")) found.push({ kind: "added", text, old: null, new: now++, ends: true });
    else if (line.startsWith("-")) found.push({ kind: "removed", text, old: old++, new: null, ends: true });
    else if (line.startsWith(" ")) found.push({ kind: "same", text, old: old++, new: now++, ends: true });
    else return null;
  }
  return old === oldEnd && now === newEnd ? at : null;
}

const WORD = /^[\p{L}\p{N}_]$/u;

/** A preview with signs at the beginnings of its lines; nothing of it is folded. */
export function readSignedLines(text: string): DiffLine[] | null {
  const lines = splitLines(text);
  if (!lines.some((line) => line.startsWith("+")) || !lines.some((line) => line.startsWith("-"))) return null;
  const signed = lines.map((line): DiffLine => {
    if (ABOUT_FILE.test(line)) return plainLine("file", line);
    if (HUNK.test(line)) return plainLine("place", line);
    const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "text";
    return plainLine(kind, kind === "text" ? line : line.slice(1));
  });
  return markEnds(signed.at(-1)?.text === "" ? signed.slice(0, -1) : signed, lines);
}

/** Unchanged lines far from a change are folded, unless something in them is escaped and has to be seen. */
export function foldDiff(lines: readonly DiffLine[]): DiffBlock[] {
  const isNear = lines.map(() => false);
  lines.forEach((line, at) => {
    if (line.kind === "added" || line.kind === "removed")
      isNear.fill(true, Math.max(0, at - AROUND), at + AROUND + 1);
  });
  const blocks: DiffBlock[] = [];
  lines.forEach((line, at) => {
    const isFolded = line.kind === "same" && !isNear[at] && !line.text.includes("\\u{");
    const last = blocks.at(-1);
    if (last?.isFolded === isFolded) last.lines.push(line);
    else blocks.push({ lines: [line], isFolded });
  });
  return blocks.map((block) => (block.lines.length < MIN_FOLD ? { ...block, isFolded: false } : block));
}

/** What differs between a removed line and the added line in its place; most of both has to be the same. */
export function compareLines(before: string, after: string): [before: LinePart[], after: LinePart[]] {
  const [old, now] = [splitAtoms(before), splitAtoms(after)];
  const shorter = Math.min(old.length, now.length);
  let head = 0;
  while (head < shorter && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < shorter - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail++;
  // whole words and numbers, not only the digits that differ
  while (head > 0 && WORD.test(old[head - 1] ?? "")) head--;
  while (tail > 0 && WORD.test(old[old.length - tail] ?? "")) tail--;
  const isAlike = (head + tail) * 2 >= shorter && head + tail > 0;
  const split = (atoms: string[]): LinePart[] => {
    const parts = isAlike
      ? [atoms.slice(0, head), atoms.slice(head, atoms.length - tail), atoms.slice(atoms.length - tail)]
      : [atoms];
    return parts
      .map((part, at) => ({ text: part.join(""), changed: isAlike && at === 1 }))
      .filter(({ text }) => text !== "");
  };
  return [split(old), split(now)];
}

/** The parts of each line, by its index: the first removed line is compared with the first added one, and so on. */
export function markChanges(lines: readonly DiffLine[]): ReadonlyMap<DiffLine, LinePart[]> {
  const parts = new Map<DiffLine, LinePart[]>();
  let removed: DiffLine[] = [];
  let added: DiffLine[] = [];
  const pair = () => {
    if (removed.length === added.length)
      removed.forEach((line, at) => {
        const other = added[at] as DiffLine;
        const [before, after] = compareLines(line.text, other.text);
        parts.set(line, before).set(other, after);
      });
    [removed, added] = [[], []];
  };
  for (const line of lines) {
    if (line.kind === "removed" && added.length) pair();
    if (line.kind === "removed") removed.push(line);
    else if (line.kind === "added") added.push(line);
    else pair();
  }
  pair();
  return parts;
}

/** At the escapes of line breaks: a doubled backslash before an n is text. */
function splitLines(text: string): string[] {
  const lines: string[] = [];
  let from = 0;
  for (let at = text.indexOf("\\"); at >= 0; at = text.indexOf("\\", at + 2)) {
    if (text[at + 1] !== "n") continue;
    lines.push(text.slice(from, at));
    from = at + 2;
  }
  return [...lines, text.slice(from)];
}
