import { Button, Text } from "@mantine/core";
import { countOf, type Changed, type Edit } from "./changes";
import css from "./Card.module.css";
import { Visible } from "./Text";

const MOST = 20;

/** Somebody changed the arguments while this person looked at others: what, and that a new look is wanted. */
export function ChangedMeanwhile({ edits, onLooked }: { edits: readonly Edit[]; onLooked: () => void }) {
  return (
    <div className={css.block} data-tone="look" role="alert" data-changed={edits.length}>
      <Text fw={700}>The arguments changed while you looked at them</Text>
      <Edits edits={edits} />
      <Text size="sm" my={6}>
        Below is what would run now. What you looked at before does not count for it.
      </Text>
      <Button variant="default" onClick={onLooked}>
        I have seen the changes
      </Button>
    </div>
  );
}

/** Who changed what. */
export function Edits({ edits }: { edits: readonly Edit[] }) {
  return edits.map((edit) => (
    <div key={edit.seq} data-edited-by={edit.by}>
      <Text size="sm">
        <strong>{edit.by}</strong> made {countOf([edit])}:
      </Text>
      <ul className={css.plainList}>
        {edit.changed.slice(0, MOST).map((changed) => (
          <ChangeLine key={changed.name} changed={changed} />
        ))}
        {edit.count > MOST && <li>and {(edit.count - MOST).toLocaleString("en")} more</li>}
      </ul>
    </div>
  ));
}

function ChangeLine({ changed: { name, before, after } }: { changed: Changed }) {
  return (
    <li data-change={name}>
      <strong>
        <Visible text={name.replace(/^\//, "")} />
      </strong>{" "}
      <span className={css.mono}>
        {before !== null && (
          <del className={css.from}>
            <Visible text={before} />
          </del>
        )}
        {before === null ? "added " : " → "}
        {after !== null ? <Visible text={after} /> : "taken away"}
      </span>
    </li>
  );
}
