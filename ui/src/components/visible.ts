/** The same as `visible` of the server's core/card.py: two different texts never look alike. */
export function visible(text: string): string {
  if (/^[ -~]*$/.test(text)) return text.replaceAll("\\", "\\\\");
  const deceives = marksDeceive(text);
  return text.replace(EVERY, (ch) => (isHidden(ch) || (deceives && !standsAlone(ch)) ? escaped(ch) : ch));
}

/** The same for words of several lines. */
export const visibleLines = (text: string): string[] => text.split("\n").map(visible);

/** A value on one line, as cards show it: `1` and `"1"` differ. */
export function quoteVisible(text: string): string {
  return `"${visible(text).replaceAll('"', '\\"')}"`;
}

/** Whether an input of the page would change or hide a part of the text; line breaks and tabs are no trouble. */
export function needsEscapes(text: string): boolean {
  const plain = text.replace(PICTURE, "").replace(/[\n\t\\]/g, "");
  return plain !== "" && visible(plain) !== plain;
}

/** JSON in which everything that cannot be seen is written as an escape; it reads the same. */
export function visibleJson(text: string): string {
  return text.replace(UNSEEN_IN_JSON, (ch) =>
    Array.from(
      { length: ch.length },
      (_, at) => `\\u${ch.charCodeAt(at).toString(16).padStart(4, "0")}`,
    ).join(""),
  );
}

function isHidden(ch: string): boolean {
  return ch === "\\" || (ch !== " " && UNSEEN.test(ch)) || BLANK.test(ch);
}

/** Whether accents could make two texts look the same, cover their neighbours, or land on our quotation mark. */
function marksDeceive(text: string): boolean {
  return /^\p{M}/u.test(text) || text.normalize("NFC") !== text || PILED.test(text);
}

function standsAlone(ch: string): boolean {
  return ch.normalize("NFC") === ch && !/[\u1160-\u11ff]|\p{M}/u.test(ch);
}

function escaped(ch: string): string {
  return SHORT[ch] ?? `\\u{${(ch.codePointAt(0) ?? 0).toString(16)}}`;
}

const SHORT: Record<string, string> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const EVERY = /[^]/gu;
const UNSEEN = /[\p{C}\p{Z}]/u;
const BLANK =
  /[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\u{16fe4}\u{1d159}\u{e0100}-\u{e01ef}]/u;
const UNSEEN_IN_JSON = new RegExp(`(?![ \\n])${UNSEEN.source}|${BLANK.source}`, "gu");
const MARK = "\\u0300-\\u036f\\u0483-\\u0489\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f";
const PILED = new RegExp(
  `[${MARK}]{4}|[\\u0334-\\u0338\\u0488\\u0489\\u1abe\\u20d2-\\u20e2\\u20e4-\\u20f0]`,
  "u",
);
const PICTURE =
  /\p{Emoji}\ufe0f\u20e3?|\p{Extended_Pictographic}\ufe0f?(?:\u200d\p{Extended_Pictographic}\ufe0f?)*/gu;
