/** Same as `escape_invisible` in the server's core/card.py: two different texts never look alike. */
export function escapeInvisible(text: string): string {
  if (/^[ -~]*$/.test(text)) return text.replaceAll("\\", "\\\\");
  const hasDeceptiveMarks = findsDeceptiveMarks(text);
  const foreignMarks = findForeignMarks(text);
  return text.replace(ANY_CHARACTER, (ch) =>
    isHidden(ch) || foreignMarks.has(ch) || (hasDeceptiveMarks && !isStandalone(ch))
      ? escapeCharacter(ch)
      : ch,
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
  const foreignMarks = findForeignMarks(text);
  return text.replace(ANY_CHARACTER, (ch) =>
    INVISIBLE_IN_JSON.test(ch) || foreignMarks.has(ch) ? escapeInJson(ch) : ch,
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

/** Marks of one script that follow a letter of another, where most fonts draw nothing for some of them. */
function findForeignMarks(text: string): Set<string> {
  const clusters = new Set(Array.from(text.matchAll(MARKS_AFTER_BASE), ([cluster]) => cluster));
  return new Set(
    [...clusters].flatMap((cluster) => {
      const base = /^[\p{M}\u200c\u200d]/u.test(cluster) ? 0 : scriptOf(cluster);
      return [...cluster].filter((ch) => /\p{M}/u.test(ch) && ![0, base].includes(scriptOf(ch)));
    }),
  );
}

/** The number of the script that has combining marks of its own, else 0. */
function scriptOf(ch: string): number {
  const code = ch.codePointAt(0) ?? 0;
  return 1 + SCRIPTS.findIndex((blocks) => blocks.some(([first, last]) => first <= code && code <= last));
}

function escapeInJson(ch: string): string {
  return Array.from(
    { length: ch.length },
    (_, at) => `\\u${ch.charCodeAt(at).toString(16).padStart(4, "0")}`,
  ).join("");
}

function escapeCharacter(ch: string): string {
  return SHORT_ESCAPES[ch] ?? `\\u{${(ch.codePointAt(0) ?? 0).toString(16)}}`;
}

const SHORT_ESCAPES: Record<string, string> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const ANY_CHARACTER = /[^]/gu;
const INVISIBLE = /[\p{C}\p{Z}]/u;
const BLANK =
  /[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\u{16fe4}\u{1d159}\u{e0100}-\u{e01ef}]/u;
const INVISIBLE_IN_JSON = new RegExp(`(?![ \\n])${INVISIBLE.source}|${BLANK.source}`, "u");
const MARKS_AFTER_BASE = /[^\p{M}\u200c\u200d]?[\p{M}\u200c\u200d]+/gu;
/** Blocks of the scripts that have combining marks of their own; the same as in core/card.py. */
const MARKED_SCRIPTS =
  "3e2-3ef 2c80-2cff 102e0-102ff; 400-52f 1c80-1c8f 2de0-2dff a640-a69f 1e030-1e08f; 591-5ff " +
  "fb1d-fb4f; 600-77f 860-8ff fb50-fdff fe70-fefe 10ec0-10eff 1ee00-1eeff; 780-7bf; 7c0-7ff; 800-83f; " +
  "840-85f; 900-97f a8e0-a8ff 11b00-11b5f; 980-9ff; a00-a7f; a80-aff; b00-b7f; b80-bff 11fc0-11fff; " +
  "c00-c7f; c80-cff; d00-d7f; d80-dff 111e1-111ff; e00-e7f; e80-eff; f00-fff; 1000-109f a9e0-a9ff " +
  "aa60-aa7f 116d0-116ff; 1100-11ff 302e-302f 3130-318f a960-a97f ac00-d7ff; 1200-139f 2d80-2ddf " +
  "ab00-ab2f 1e7e0-1e7ff; 1700-171f; 1720-173f; 1740-175f; 1760-177f; 1780-17ff 19e0-19ff; 1800-18af " +
  "11660-1167f; 1900-194f; 1a00-1a1f; 1a20-1aaf; 1b00-1b7f; 1b80-1bbf 1cc0-1ccf; 1bc0-1bff; " +
  "1c00-1c4f; 2c00-2c5f 1e000-1e02f; 2d30-2d7f; 3005-3007 3021-302d 3038-303b 3100-312f 31a0-31bf " +
  "3400-4dbf 4e00-9fff f900-faff 16ff0-16ff1 20000-3ffff; 3031-3035 3041-30ff 31f0-31ff ff66-ff9f " +
  "1aff0-1b16f; a6a0-a6ff 16800-16a3f; a800-a82f; a880-a8df; a900-a92f; a930-a95f; a980-a9df; " +
  "aa00-aa5f; aa80-aadf; aae0-aaff abc0-abff; 101d0-101ff; 10350-1037f; 10a00-10a5f; 10ac0-10aff; " +
  "10d00-10d3f; 10d40-10d8f; 10e80-10ebf; 10f30-10f6f; 10f70-10faf; 11000-1107f; 11080-110cf; " +
  "11100-1114f; 11150-1117f; 11180-111df; 11200-1124f; 112b0-112ff; 11300-1137f; 11380-113ff; " +
  "11400-1147f; 11480-114df; 11580-115ff; 11600-1165f; 11680-116cf; 11700-1174f; 11800-1184f; " +
  "11900-1195f; 119a0-119ff; 11a00-11a4f; 11a50-11aaf; 11c00-11c6f; 11c70-11cbf; 11d00-11d5f; " +
  "11d60-11daf; 11ee0-11eff; 11f00-11f5f; 16100-1613f; 16ad0-16aff; 16b00-16b8f; 16d40-16d7f; " +
  "16f00-16f9f; 1bc00-1bc9f; 1cf00-1cfcf; 1d100-1d1ff; 1d200-1d24f; 1d800-1daaf; 1e100-1e14f; " +
  "1e290-1e2bf; 1e2c0-1e2ff; 1e4d0-1e4ff; 1e5d0-1e5ff; 1e800-1e8df; 1e900-1e95f";
const SCRIPTS = MARKED_SCRIPTS.split("; ").map((script) =>
  script.split(" ").map((block) => {
    const [first = "", last = ""] = block.split("-");
    return [Number.parseInt(first, 16), Number.parseInt(last, 16)] as const;
  }),
);
const MARK = "\\u0300-\\u036f\\u0483-\\u0489\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f";
const STACKED_MARKS = new RegExp(
  `[${MARK}]{4}|[\\u0334-\\u0338\\u0488\\u0489\\u1abe\\u20d2-\\u20e2\\u20e4-\\u20f0]`,
  "u",
);
const EMOJI =
  /\p{Emoji}\ufe0f\u20e3?|\p{Extended_Pictographic}\ufe0f?(?:\u200d\p{Extended_Pictographic}\ufe0f?)*/gu;
