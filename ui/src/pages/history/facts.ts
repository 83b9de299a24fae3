import { content, data, type Entry } from "./sentences";
import { visible } from "../../components/visible";

export interface Fact {
  label: string;
  text: string;
  /** What people wrote is quoted, digests are set like code. */
  look?: "quote" | "code";
}

export interface Change {
  name: string;
  before: string | null;
  after: string | null;
}

/** How the actor came, what they saw, and what they wrote: as far as it is kept. */
export function facts(entry: Entry): Fact[] {
  const said = (name: string, label: string): Fact[] => {
    const found = content(entry, name);
    return typeof found === "string" && found ? [{ label, text: visible(found) }] : [];
  };
  return [
    ...said("via", "through"),
    ...said("seat", "in the seat of"),
    ...said("args_sha256", SEEN[entry.kind] ?? "saw arguments").map(coded),
    ...said("result_sha256", "result").map(coded),
    ...needed(entry),
    ...acknowledged(entry),
    ...quotes(entry),
  ];
}

/** Of an edit; kept with it until it is erased. */
export function changes(entry: Entry): Change[] {
  const found = content(entry, "changes");
  return entry.kind === "edited" && Array.isArray(found) ? (found as Change[]) : [];
}

// An agent brings arguments, an editor leaves others behind; everybody else saw them.
const SEEN: Record<string, string> = {
  proposed: "arguments",
  allowed: "arguments",
  denied: "arguments",
  edited: "left arguments",
};

const coded = (fact: Fact): Fact => ({ ...fact, look: "code" });

function needed(entry: Entry): Fact[] {
  const quorum = data(entry, "quorum");
  if (!Array.isArray(quorum) || (quorum.length === 1 && quorum[0] === 1)) return [];
  return [{ label: "needs", text: `${quorum.join(", then ")} ${quorum.at(-1) === 1 ? "person" : "people"}` }];
}

function acknowledged(entry: Entry): Fact[] {
  const found = content(entry, "acknowledged");
  if (!Array.isArray(found) || !found.length) return [];
  return [{ label: "acknowledged", text: found.map((id) => visible(String(id))).join(", ") }];
}

const WRITTEN = ["text", "reason", "comment", "note", "error", "sentence"];

function quotes(entry: Entry): Fact[] {
  return WRITTEN.flatMap((name) => {
    const found = content(entry, name);
    return typeof found === "string" && found ? [{ label: name, text: found, look: "quote" as const }] : [];
  });
}
