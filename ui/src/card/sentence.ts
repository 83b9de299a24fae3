import type { Argument } from "../api/approvals";
import { splitAtoms } from "./VisibleText";

const MAX_WHOLE = 80; // characters of listed arguments that stand in the title
const MAX_DIGEST = 300;
const MAX_LISTED = 8; // arguments that the server lists

/** The parts of a sentence that lists arguments: the tool's title, and the list on one line. */
interface SentenceParts {
  title: string;
  digest: string;
}

/**
 * A tool without a sentence of its own has one that lists its arguments. All of them are below, so that the list is
 * cut to one line. Null for any other sentence, which is never cut.
 */
export function splitSentence(sentence: string, fields: readonly Argument[]): SentenceParts | null {
  const names = fields.filter(({ pointer }) => pointer.lastIndexOf("/") === 0).map(({ name }) => name);
  const [first, ...others] = names.slice(0, MAX_LISTED);
  if (first === undefined) return null;
  const at = sentence.indexOf(`: ${first} = `);
  if (at <= 0) return null;
  const list = sentence.slice(at + 2);
  if (!others.every((name) => list.includes(`, ${name} = `))) return null;
  if (list.length <= MAX_WHOLE && !list.includes("\\n")) return null;
  const line = splitAtoms(list.slice(0, MAX_DIGEST)).map((atom) => (atom === "\\n" ? " " : atom));
  return { title: sentence.slice(0, at), digest: line.join("") };
}
