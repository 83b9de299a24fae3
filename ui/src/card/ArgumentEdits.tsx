import { Button, Text } from "@mantine/core";
import type { ApprovalSnapshot } from "../api/approvals";
import css from "./ApprovalCard.module.css";
import * as messages from "./editMessages";
import { usePersonName } from "./usePersonName";
import { VisibleText } from "./VisibleText";

const MAX_SHOWN = 20;

/** Lists arguments that somebody else changed while the user was reviewing, and asks for a new review. */
export function EditsNotice({
  edits,
  onReviewed,
}: {
  edits: readonly ArgumentEdit[];
  onReviewed: () => void;
}) {
  return (
    <div className={css.block} data-tone="look" role="alert" data-changed={edits.length}>
      <Text fw={700}>{messages.argumentsChanged}</Text>
      <EditList edits={edits} />
      <Text size="sm" my={6}>
        {messages.currentArgumentsBelow}
      </Text>
      <Button variant="default" onClick={onReviewed}>
        {messages.iHaveReviewedChanges}
      </Button>
    </div>
  );
}

/** Edits by person. */
export function EditList({ edits }: { edits: readonly ArgumentEdit[] }) {
  const nameOf = usePersonName();
  return edits.map((edit) => (
    <div key={edit.seq} data-edited-by={edit.by}>
      <Text size="sm">
        <strong>{nameOf(edit.by, true)}</strong> {messages.madeChanges(countChanges([edit]))}
      </Text>
      <ul className={css.plainList}>
        {edit.changed.slice(0, MAX_SHOWN).map((changed) => (
          <ChangeLine key={changed.name} changed={changed} />
        ))}
        {edit.count > MAX_SHOWN && <li>{messages.andMoreChanges(edit.count - MAX_SHOWN)}</li>}
      </ul>
    </div>
  ));
}

function ChangeLine({ changed: { name, before, after } }: { changed: ArgumentChange }) {
  return (
    <li data-change={name}>
      <strong>
        <VisibleText text={name.replace(/^\//, "")} />
      </strong>{" "}
      <span className={css.mono}>
        {before !== null && (
          <del className={css.from}>
            <VisibleText text={before} />
          </del>
        )}
        {before === null ? messages.addedPrefix : " → "}
        {after !== null ? <VisibleText text={after} /> : messages.removedWord}
      </span>
    </li>
  );
}

/** One changed argument as it was displayed; null where it did not exist. */
interface ArgumentChange {
  name: string;
  before: string | null;
  after: string | null;
}

/** The changes of one edit; `count` is the total, `changed` may be shortened. */
export interface ArgumentEdit {
  seq: number;
  by: string;
  changed: ArgumentChange[];
  count: number;
}

/** From the ledger; an edit whose content was erased has no changes to show. */
export function readEdits(timeline: ApprovalSnapshot["timeline"]): ArgumentEdit[] {
  return timeline
    .filter(({ kind }) => kind === "edited")
    .map(({ seq, actor, content }) => {
      const changed = Array.isArray(content?.changes) ? (content.changes as ArgumentChange[]) : [];
      return { seq, by: actor, changed, count: Number(content?.changed ?? changed.length) };
    });
}

/** Edits by others since the reviewed snapshot; null if the arguments are the same. */
export function findEditsSince(seen: ApprovalSnapshot, now: ApprovalSnapshot): ArgumentEdit[] | null {
  if (seen.args_sha256 === now.args_sha256) return null;
  const last = seen.timeline.at(-1)?.seq ?? 0;
  return readEdits(now.timeline).filter(({ seq }) => seq > last);
}

/** "1 change", "3 changes"; "changes" if the number is unknown. */
export function countChanges(edits: readonly ArgumentEdit[]): string {
  const count = edits.reduce((sum, edit) => sum + edit.count, 0);
  return count ? messages.changeCount(count) : messages.changes;
}
