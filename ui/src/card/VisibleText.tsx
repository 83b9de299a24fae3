import { Fragment } from "react";
import "./colors.css";
import { escapeInvisible } from "../components/escapeInvisible";
import css from "./VisibleText.module.css";

/** A text made visible by the server: escapes as chips, look-alike letters marked; its text content is unchanged. */
export function VisibleText({ text, marked = false }: { text: string; marked?: boolean }) {
  return splitPieces(text, marked).map((piece, position) => <Piece key={position} piece={piece} />);
}

/** Raw text of people, agents and tools: keeps line breaks and escapes invisible characters. */
export function MultilineText({ text }: { text: string }) {
  return (
    <span className={css.words}>
      {text.split(/\r?\n/).map((line, position) => (
        <Fragment key={position}>
          {position > 0 && "\n"}
          <VisibleText text={escapeInvisible(line)} />
        </Fragment>
      ))}
    </span>
  );
}

function Piece({ piece: { kind, text } }: { piece: TextPiece }) {
  if (kind === "plain") return text;
  if (kind === "odd")
    return (
      <span className={css.odd} data-code={codePointLabel(text)}>
        {text}
      </span>
    );
  return <span className={css[kind]}>{text}</span>;
}

function codePointLabel(letter: string): string {
  return `U+${letter.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** One piece of a visible text; joined, the pieces are exactly that text. */
interface TextPiece {
  kind: "plain" | "quiet" | "chip" | "break" | "tab" | "quote" | "odd";
  text: string;
}

const ESCAPE = /\\(?:u\{[0-9a-f]+\}|[^])/gu;

/** Splits a text at its escapes, and with `marked` also at look-alike letters. */
export function splitPieces(text: string, marked = false): TextPiece[] {
  const pieces: TextPiece[] = [];
  let at = 0;
  for (const match of text.matchAll(ESCAPE)) {
    pieces.push(...plainPieces(text.slice(at, match.index), marked), {
      kind: escapeKind(match[0]),
      text: match[0],
    });
    at = match.index + match[0].length;
  }
  return [...pieces, ...plainPieces(text.slice(at), marked)];
}

/**
 * The ends of a long text, never split inside an escape; `hidden` counts the characters between them, each escape as
 * the one that it stands for.
 */
export function shortenMiddle(
  text: string,
  head: number,
  tail: number,
): { head: string; tail: string; hidden: number } {
  if (text.length <= head + tail) return { head: text, tail: "", hidden: 0 };
  const [first, last] = cutPositions(text, head, text.length - tail);
  return {
    head: text.slice(0, first),
    tail: text.slice(last),
    hidden: countCharacters(text.slice(first, last)),
  };
}

/** Characters as people and the server count them, without those that only escapes add. */
export function countCharacters(text: string): number {
  const escapes = text.match(ESCAPE)?.reduce((sum, escape) => sum + escape.length - 1, 0) ?? 0;
  const pairs = text.match(/[\u{10000}-\u{10ffff}]/gu)?.length ?? 0;
  return text.length - escapes - pairs;
}

/** The text in pieces that are each shown as one: a character, or an escape. */
export function splitAtoms(text: string): string[] {
  return text.match(/\\(?:u\{[0-9a-f]+\}|[^])|[^]/gu) ?? [];
}

function escapeKind(escape: string): TextPiece["kind"] {
  if (escape === "\\n") return "break";
  if (escape === "\\t") return "tab";
  if (escape === '\\"') return "quote";
  return escape === "\\\\" ? "quiet" : "chip";
}

function plainPieces(text: string, marked: boolean): TextPiece[] {
  if (!text) return [];
  const lookalikes = sortSpans([...(marked ? findLookalikes(text) : []), ...findBreakSigns(text)]);
  const pieces: TextPiece[] = [];
  let at = 0;
  for (const [start, end] of lookalikes) {
    if (start > at) pieces.push({ kind: "plain", text: text.slice(at, start) });
    pieces.push({ kind: "odd", text: text.slice(start, end) });
    at = end;
  }
  return at < text.length ? [...pieces, { kind: "plain", text: text.slice(at) }] : pieces;
}

/** Moves each position to the start of its escape, or by one to keep a surrogate pair together. */
function cutPositions(text: string, ...positions: number[]): [number, number] {
  const moved = positions.map((position) =>
    /[\udc00-\udfff]/.test(text.charAt(position)) ? position - 1 : position,
  );
  for (let at = text.indexOf("\\"); at >= 0;) {
    const end = text.startsWith("\\u{", at) ? text.indexOf("}", at) + 1 : at + 2;
    moved.forEach((position, index) => {
      if (at < position && position < end) moved[index] = at;
    });
    at = text.indexOf("\\", end);
  }
  return [moved[0] ?? 0, moved[1] ?? 0];
}

/** Start and end of a letter, in code units. */
type Span = [start: number, end: number];

const WORD = /[\p{L}\p{M}\p{N}]+/gu;
const LATIN = /[A-Za-z\u00c0-\u024f\u1e00-\u1eff]/u;
const OTHER = /[\p{L}\p{N}]/u;
const DIGIT = /[0-9\p{M}]/u;
// Styled Latin letters, and signs that look like a dot, a slash or an at sign
const STYLED = /[\uff21-\uff3a\uff41-\uff5a\u2102-\u2134\u{1d400}-\u{1d7ff}]/u;
const LOOKALIKE_SIGN =
  /[\u037e\u1fef\u2024\u2044\u2215\u2236\u29f8\u3002\ua789\ufe52\ufe6b\uff0e\uff0f\uff20\uff61]/gu;
// Cyrillic and Greek letters that look like Latin ones
const CYRILLIC =
  "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501\u051b\u051d\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c-\u041e\u0420-\u0423\u0425\u04c0";
const GREEK =
  "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c5\u03c7\u0391\u0392\u0395-\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7";
const LATIN_LOOKALIKE = new RegExp(`[${CYRILLIC}${GREEK}]`, "u");

/** The sign that we draw for a line break is always marked where a text itself has it. */
function findBreakSigns(text: string): Span[] {
  return [...text.matchAll(/\u21b5/g)].map((match): Span => [match.index, match.index + 1]);
}

/** The letters to mark in a text with look-alikes, in order. */
function findLookalikes(text: string): Span[] {
  const signs = [...text.matchAll(LOOKALIKE_SIGN)].map((match): Span => [
    match.index,
    match.index + match[0].length,
  ]);
  const letters = [...text.matchAll(WORD)].flatMap((match) => findOddLetters(match[0], match.index));
  return [...signs, ...letters].sort(([a], [b]) => a - b);
}

/**
 * In a word of two alphabets the rarer letters are odd; in a word of one, all of them if each looks like a Latin
 * letter.
 */
function findOddLetters(word: string, from: number): Span[] {
  const latin: Span[] = [];
  const others: Span[] = [];
  const styled: Span[] = [];
  let lookalikeCount = 0;
  let at = from;
  for (const letter of word) {
    const position: Span = [at, (at += letter.length)];
    if (STYLED.test(letter)) styled.push(position);
    else if (LATIN.test(letter)) latin.push(position);
    else if (OTHER.test(letter) && !DIGIT.test(letter)) {
      others.push(position);
      if (LATIN_LOOKALIKE.test(letter)) lookalikeCount += 1;
    }
  }
  if (latin.length && others.length)
    return sortSpans([...styled, ...(latin.length < others.length ? latin : others)]);
  return sortSpans(lookalikeCount === others.length || styled.length ? [...styled, ...others] : styled);
}

function sortSpans(positions: Span[]): Span[] {
  return positions.sort(([a], [b]) => a - b);
}
