import type { Argument } from "../api/approvals";
import * as messages from "./messages";
import { splitAtoms } from "./VisibleText";

const MAX_WHOLE = 80; // characters of listed arguments that stand in the title
const MAX_DIGEST = 300;
const MAX_LISTED = 8; // arguments that the server lists
const MAX_NAME = 60;
const MAX_VALUE = 160;
const HIDDEN = "(hidden)";
const SHORT: Record<string, string> = { n: "\n", r: "\r", t: "\t" };

/** The parts of a sentence that lists arguments: the tool's title, and the list on one line. */
interface SentenceParts {
  title: string;
  digest: string;
}

/**
 * A tool without a sentence of its own has one that lists its arguments. All of them are below, so that the list is
 * cut to one line. Null for any other sentence, which is never cut: the list is what the server writes for exactly these
 * arguments, up to its end, so that words inside an argument cannot look like it.
 */
export function splitSentence(sentence: string, fields: readonly Argument[]): SentenceParts | null {
  const listed = fields.filter(({ pointer }) => pointer.lastIndexOf("/") === 0);
  const starts = listed.map((field) => sentence.indexOf(`: ${nameOf(field)} = `)).filter((at) => at > 0);
  const at = starts.find((each) => isListOf(unescape(sentence.slice(each + 2)), listed));
  if (at === undefined) return null;
  const list = sentence.slice(at + 2);
  if (list.length <= MAX_WHOLE && !list.includes("\\n")) return null;
  const line = splitAtoms(list.slice(0, MAX_DIGEST)).map((atom) => (atom === "\\n" ? " " : atom));
  return { title: sentence.slice(0, at), digest: line.join("") };
}

/** The order is the stored one or that of the tool's schema. */
function isListOf(list: string, fields: readonly Argument[]): boolean {
  let rest = list;
  const others = new Map(fields.map((field) => [`${unescape(nameOf(field))} = `, field]));
  for (let index = 0; index < Math.min(MAX_LISTED, fields.length); index++) {
    if (index && !rest.startsWith(", ")) return false;
    if (index) rest = rest.slice(2);
    const [name, field] = [...others].find(([start]) => rest.startsWith(start)) ?? [];
    if (!name || !field) return false;
    others.delete(name);
    rest = rest.slice(name.length);
    const value = writtenForms(field, rest).find((form) => rest.startsWith(form));
    if (!value) return false;
    rest = rest.slice(value.length);
  }
  const more = fields.length - MAX_LISTED;
  return rest === (more > 0 ? `, and ${more} more ${more === 1 ? "argument" : "arguments"}` : "");
}

const nameOf = ({ name }: Argument) =>
  /^[\p{L}\p{N}_.-]{1,60}$/u.test(name) ? name : quoted(name, MAX_NAME);

/** How the server may write a value; of a list or an object, what stands there, if it is one. */
function writtenForms({ type, text }: Argument, rest: string): string[] {
  const value = unescape(type === "string" ? text.slice(1, -1) : text); // shown in quotation marks
  if (/^[[{]/.test(rest) && (type === "object" || type === "array")) return [jsonAt(rest)];
  return [HIDDEN, quoted(value, MAX_VALUE), ...(/[",=…]/.test(value) ? [] : [value])];
}

function quoted(text: string, limit: number): string {
  const characters = [...text];
  const head = characters.slice(0, limit).join("").replaceAll('"', '""');
  const shown = /^[◌\p{M}]/u.test(head) ? `◌${head}` : head;
  return characters.length <= limit
    ? `"${shown}"`
    : messages.shownCountOfCharacters(shown, countOf(characters));
}

/** JSON up to its last bracket, or its beginning and its length. */
function jsonAt(text: string): string {
  const cut = /^(?:[^]{160})… \([\d,]+ characters\)/u.exec(text);
  if (cut) return cut[0];
  let depth = 0;
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\[^])*"|[[\]{}]/g)) {
    if (token.length > 1) continue;
    depth += "[{".includes(token) ? 1 : -1;
    if (depth === 0) return text.slice(0, index + 1);
  }
  return "";
}

const countOf = (characters: readonly string[]) => characters.length.toLocaleString("en");

function unescape(shown: string): string {
  return shown.replace(/\\(?:u\{([0-9a-f]+)\}|([^]))/gu, (_, code: string | undefined, short: string) =>
    code ? String.fromCodePoint(Number.parseInt(code, 16)) : (SHORT[short] ?? short),
  );
}
