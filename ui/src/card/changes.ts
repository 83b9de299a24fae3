import type { Read } from "../api/approvals";

/** One argument that is not what it was, as people saw it; null where there is or was none. */
export interface Changed {
  name: string;
  before: string | null;
  after: string | null;
}

/** What one person changed at one time; `count` is of all, `changed` has the first of them. */
export interface Edit {
  seq: number;
  by: string;
  changed: Changed[];
  count: number;
}

/** From the ledger; an edit whose content was erased has no changes to show. */
export function editsOf(timeline: Read["timeline"]): Edit[] {
  return timeline
    .filter(({ kind }) => kind === "edited")
    .map(({ seq, actor, content }) => {
      const changed = Array.isArray(content?.changes) ? (content.changes as Changed[]) : [];
      return { seq, by: actor, changed, count: Number(content?.changed ?? changed.length) };
    });
}

/** What others changed since this person looked; null if the arguments are those that they looked at. */
export function editsSince(seen: Read, now: Read): Edit[] | null {
  if (seen.args_sha256 === now.args_sha256) return null;
  const last = seen.timeline.at(-1)?.seq ?? 0;
  return editsOf(now.timeline).filter(({ seq }) => seq > last);
}

/** "1 change", "3 changes"; "changes" where nobody knows how many. */
export function countOf(edits: readonly Edit[]): string {
  const count = edits.reduce((sum, edit) => sum + edit.count, 0);
  return count ? `${count.toLocaleString("en")} ${count === 1 ? "change" : "changes"}` : "changes";
}
