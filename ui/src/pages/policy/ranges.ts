/** Lines of a rule in the text, counted from 0: `first` is where its own comments begin, `end` is behind its last. */
export interface Range {
  first: number;
  end: number;
}

/**
 * Where each rule stands, by the lines on which the server says that they begin (counted from 1). Null where rules do
 * not have lines of their own: then only the text itself can be changed.
 */
export function ruleRanges(text: string, begins: (number | null)[]): Range[] | null {
  const lines = text.split("\n");
  const dashes = begins.map((line) => /^( *)- /.exec(lines[(line ?? 0) - 1] ?? "")?.[1]?.length ?? -1);
  const indent = dashes[0] ?? -1;
  if (indent < 0 || dashes.some((each) => each !== indent)) return null;
  const starts = begins.map((line) => (line ?? 0) - 1);
  if (starts.some((start, at) => at > 0 && start <= (starts[at - 1] ?? 0))) return null;
  const firsts = starts.map((start, at) => withComments(lines, start, at ? (starts[at - 1] ?? 0) + 1 : 0));
  return firsts.map((first, at) => {
    const limit = firsts[at + 1] ?? sectionEnd(lines, (starts[at] ?? 0) + 1, indent);
    return { first, end: contentEnd(lines, starts[at] ?? 0, limit) };
  });
}

/** The rule changes places with the one before or behind it; what stands between them stays. */
export function moved(text: string, ranges: Range[], from: number, to: number): string {
  const lines = text.split("\n");
  const [upper, lower] = from < to ? [ranges[from], ranges[to]] : [ranges[to], ranges[from]];
  if (!upper || !lower) return text;
  return [
    ...lines.slice(0, upper.first),
    ...lines.slice(lower.first, lower.end),
    ...lines.slice(upper.end, lower.first),
    ...lines.slice(upper.first, upper.end),
    ...lines.slice(lower.end),
  ].join("\n");
}

/** Without the rule, its comments, and the empty lines behind it. */
export function removed(text: string, ranges: Range[], at: number): string {
  const lines = text.split("\n");
  const range = ranges[at];
  if (!range) return text;
  const next = ranges[at + 1];
  const first = next ? range.first : (ranges[at - 1]?.end ?? range.first);
  return [...lines.slice(0, first), ...lines.slice(next ? next.first : range.end)].join("\n");
}

const isComment = (line: string | undefined) => /^\s*#/.test(line ?? "");
const isBlank = (line: string | undefined) => /^\s*$/.test(line ?? "");

/** Comments right above a rule are about it. */
function withComments(lines: string[], start: number, floor: number): number {
  let first = start;
  while (first > floor && isComment(lines[first - 1])) first -= 1;
  return first;
}

/** The first line that belongs to no rule any more. */
function sectionEnd(lines: string[], from: number, indent: number): number {
  for (let at = from; at < lines.length; at += 1) {
    const line = lines[at];
    if (!isBlank(line) && !isComment(line) && (/^ */.exec(line ?? "")?.[0].length ?? 0) <= indent) return at;
  }
  return lines.length;
}

function contentEnd(lines: string[], start: number, limit: number): number {
  let end = limit;
  while (end > start + 1 && (isBlank(lines[end - 1]) || isComment(lines[end - 1]))) end -= 1;
  return end;
}
