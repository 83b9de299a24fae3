import { Fragment } from "react";
import "./colors.css";
import { visible } from "../components/visible";
import css from "./VisibleText.module.css";

/** A text that the server made visible: its escapes as chips, its look-alike letters marked; as text it stays the same. */
export function VisibleText({ text, marked = false }: { text: string; marked?: boolean }) {
  return splitPieces(text, marked).map((piece, place) => <Shown key={place} piece={piece} />);
}

/** Words of people, agents and tools that come as they are: lines stay lines, and nothing in them is hidden. */
export function MultilineText({ text }: { text: string }) {
  return (
    <span className={css.words}>
      {text.split(/\r?\n/).map((line, place) => (
        <Fragment key={place}>
          {place > 0 && "\n"}
          <VisibleText text={visible(line)} />
        </Fragment>
      ))}
    </span>
  );
}

function Shown({ piece: { kind, text } }: { piece: TextPiece }) {
  if (kind === "plain") return text;
  if (kind === "odd")
    return (
      <span className={css.odd} data-code={codeOf(text)}>
        {text}
      </span>
    );
  return <span className={css[kind]}>{text}</span>;
}

function codeOf(letter: string): string {
  return `U+${letter.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** One piece of a text that the server made visible; the pieces together are that text again, letter by letter. */
interface TextPiece {
  kind: "plain" | "quiet" | "chip" | "break" | "odd";
  text: string;
}

const ESCAPE = /\\(?:u\{[0-9a-f]+\}|[^])/gu;

/** Cuts a text at its escapes, and with `marked` also at letters that may be taken for others. */
export function splitPieces(text: string, marked = false): TextPiece[] {
  const pieces: TextPiece[] = [];
  let at = 0;
  for (const match of text.matchAll(ESCAPE)) {
    pieces.push(...plain(text.slice(at, match.index), marked), { kind: kindOf(match[0]), text: match[0] });
    at = match.index + match[0].length;
  }
  return [...pieces, ...plain(text.slice(at), marked)];
}

/** The ends of a long text, never cut inside an escape; `hidden` counts what is between them. */
export function shortenMiddle(
  text: string,
  head: number,
  tail: number,
): { head: string; tail: string; hidden: number } {
  if (text.length <= head + tail) return { head: text, tail: "", hidden: 0 };
  const [first, last] = cuts(text, head, text.length - tail);
  return { head: text.slice(0, first), tail: text.slice(last), hidden: last - first };
}

function kindOf(escape: string): TextPiece["kind"] {
  if (escape === "\\n") return "break";
  return escape === "\\\\" || escape === '\\"' ? "quiet" : "chip";
}

function plain(text: string, marked: boolean): TextPiece[] {
  if (!text) return [];
  const odd = marked ? findLookalikes(text) : [];
  const pieces: TextPiece[] = [];
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

/** From where to where a letter stands, in code units. */
type Place = [start: number, end: number];

const WORD = /[\p{L}\p{M}\p{N}]+/gu;
const LATIN = /[A-Za-z\u00c0-\u024f\u1e00-\u1eff]/u;
const OTHER = /[\p{L}\p{N}]/u;
const DIGIT = /[0-9\p{M}]/u;
// Letters that are Latin ones in another dress, and signs that pass for a dot, a slash or an at
const DRESSED = /[\uff21-\uff3a\uff41-\uff5a\u2102-\u2134\u{1d400}-\u{1d7ff}]/u;
const SIGN = /[\u037e\u1fef\u2024\u2044\u2215\u2236\u29f8\u3002\ua789\ufe52\ufe6b\uff0e\uff0f\uff20\uff61]/gu;
// Cyrillic and Greek letters that a tired eye takes for Latin ones
const CYRILLIC =
  "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501\u051b\u051d\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c-\u041e\u0420-\u0423\u0425\u04c0";
const GREEK =
  "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c5\u03c7\u0391\u0392\u0395-\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7";
const TWIN = new RegExp(`[${CYRILLIC}${GREEK}]`, "u");

/** Of a text in which the server found look-alikes: the letters to mark, in order. */
function findLookalikes(text: string): Place[] {
  const signs = [...text.matchAll(SIGN)].map((match): Place => [match.index, match.index + match[0].length]);
  const letters = [...text.matchAll(WORD)].flatMap((match) => oddOf(match[0], match.index));
  return [...signs, ...letters].sort(([a], [b]) => a - b);
}

/** In a word of two alphabets the fewer are odd; in a word of one, all of them if each passes for a Latin letter. */
function oddOf(word: string, from: number): Place[] {
  const latin: Place[] = [];
  const others: Place[] = [];
  const dressed: Place[] = [];
  let twins = 0;
  let at = from;
  for (const letter of word) {
    const place: Place = [at, (at += letter.length)];
    if (DRESSED.test(letter)) dressed.push(place);
    else if (LATIN.test(letter)) latin.push(place);
    else if (OTHER.test(letter) && !DIGIT.test(letter)) {
      others.push(place);
      if (TWIN.test(letter)) twins += 1;
    }
  }
  if (latin.length && others.length)
    return inOrder([...dressed, ...(latin.length < others.length ? latin : others)]);
  return inOrder(twins === others.length || dressed.length ? [...dressed, ...others] : dressed);
}

function inOrder(places: Place[]): Place[] {
  return places.sort(([a], [b]) => a - b);
}
