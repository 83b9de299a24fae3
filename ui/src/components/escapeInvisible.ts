/** Same as `escape_invisible` in the server's core/card.py: two different texts never look alike. */
export function escapeInvisible(text: string): string {
  if (/^[ -~]*$/.test(text)) return text.replaceAll("\\", "\\\\");
  const hasDeceptiveMarks = findsDeceptiveMarks(text);
  return text.replace(ANY_CHARACTER, (ch) =>
    isHidden(ch) || (hasDeceptiveMarks && !isStandalone(ch)) ? escapeCharacter(ch) : ch,
  );
}

/** The same for multi-line text. */
export const visibleLines = (text: string): string[] => text.split("\n").map(escapeInvisible);

/** A value on one line, as cards show it: `1` and `"1"` differ. */
export function quoteVisible(text: string): string {
  return `"${escapeInvisible(text).replaceAll('"', '\\"')}"`;
}

/** Whether an input field would change or hide a part of the text, apart from line breaks and tabs. */
export function needsEscapes(text: string): boolean {
  const plain = text.replace(EMOJI, "").replace(/[\n\t\\]/g, "");
  return plain !== "" && escapeInvisible(plain) !== plain;
}

/** JSON with invisible characters as escapes; it parses to the same value. */
export function visibleJson(text: string): string {
  return text.replace(INVISIBLE_IN_JSON, (ch) =>
    Array.from(
      { length: ch.length },
      (_, at) => `\\u${ch.charCodeAt(at).toString(16).padStart(4, "0")}`,
    ).join(""),
  );
}

function isHidden(ch: string): boolean {
  return ch === "\\" || (ch !== " " && INVISIBLE.test(ch)) || BLANK.test(ch);
}

/**
 * Whether combining marks could make two texts look alike, cover their neighbors, or attach to the quotation mark.
 */
function findsDeceptiveMarks(text: string): boolean {
  return /^\p{M}/u.test(text) || text.normalize("NFC") !== text || STACKED_MARKS.test(text);
}

function isStandalone(ch: string): boolean {
  return ch.normalize("NFC") === ch && !/[\u1160-\u11ff]|\p{M}/u.test(ch);
}

function escapeCharacter(ch: string): string {
  return SHORT_ESCAPES[ch] ?? `\\u{${(ch.codePointAt(0) ?? 0).toString(16)}}`;
}

const SHORT_ESCAPES: Record<string, string> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const ANY_CHARACTER = /[^]/gu;
const INVISIBLE = /[\p{C}\p{Z}]/u;
const BLANK =
  /[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\u{16fe4}\u{1d159}\u{e0100}-\u{e01ef}]/u;
const INVISIBLE_IN_JSON = new RegExp(`(?![ \\n])${INVISIBLE.source}|${BLANK.source}`, "gu");
const MARK = "\\u0300-\\u036f\\u0483-\\u0489\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f";
const STACKED_MARKS = new RegExp(
  `[${MARK}]{4}|[\\u0334-\\u0338\\u0488\\u0489\\u1abe\\u20d2-\\u20e2\\u20e4-\\u20f0]`,
  "u",
);
const EMOJI =
  /\p{Emoji}\ufe0f\u20e3?|\p{Extended_Pictographic}\ufe0f?(?:\u200d\p{Extended_Pictographic}\ufe0f?)*/gu;
