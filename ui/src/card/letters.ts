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
export function oddLetters(text: string): Place[] {
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
