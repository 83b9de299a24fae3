import { oddLetters } from "./letters";

/** One piece of a text that the server made visible; the pieces together are that text again, letter by letter. */
export interface Piece {
  kind: "plain" | "quiet" | "chip" | "break" | "odd";
  text: string;
}

const ESCAPE = /\\(?:u\{[0-9a-f]+\}|[^])/gu;

/** Cuts a text at its escapes, and with `marked` also at letters that may be taken for others. */
export function piecesOf(text: string, marked = false): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  for (const match of text.matchAll(ESCAPE)) {
    pieces.push(...plain(text.slice(at, match.index), marked), { kind: kindOf(match[0]), text: match[0] });
    at = match.index + match[0].length;
  }
  return [...pieces, ...plain(text.slice(at), marked)];
}

/** The ends of a long text, never cut inside an escape; `hidden` counts what is between them. */
export function endsOf(
  text: string,
  head: number,
  tail: number,
): { head: string; tail: string; hidden: number } {
  if (text.length <= head + tail) return { head: text, tail: "", hidden: 0 };
  const [first, last] = cuts(text, head, text.length - tail);
  return { head: text.slice(0, first), tail: text.slice(last), hidden: last - first };
}

function kindOf(escape: string): Piece["kind"] {
  if (escape === "\\n") return "break";
  return escape === "\\\\" || escape === '\\"' ? "quiet" : "chip";
}

function plain(text: string, marked: boolean): Piece[] {
  if (!text) return [];
  const odd = marked ? oddLetters(text) : [];
  const pieces: Piece[] = [];
  let at = 0;
  for (const [start, end] of odd) {
    if (start > at) pieces.push({ kind: "plain", text: text.slice(at, start) });
    pieces.push({ kind: "odd", text: text.slice(start, end) });
    at = end;
  }
  return at < text.length ? [...pieces, { kind: "plain", text: text.slice(at) }] : pieces;
}

/** Each place moved back to where its escape begins, or by one where it would part a pair of code units. */
function cuts(text: string, ...places: number[]): [number, number] {
  const moved = places.map((place) => (/[\udc00-\udfff]/.test(text.charAt(place)) ? place - 1 : place));
  for (let at = text.indexOf("\\"); at >= 0;) {
    const end = text.startsWith("\\u{", at) ? text.indexOf("}", at) + 1 : at + 2;
    moved.forEach((place, index) => {
      if (at < place && place < end) moved[index] = at;
    });
    at = text.indexOf("\\", end);
  }
  return [moved[0] ?? 0, moved[1] ?? 0];
}
