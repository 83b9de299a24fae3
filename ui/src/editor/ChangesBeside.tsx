import { lazy, Suspense } from "react";
import css from "./Editor.module.css";
import * as messages from "./messages";
import { labelCount, type ValueChange } from "./values";

const ChangesView = lazy(() => import("./ChangesView"));

interface Props {
  changes: ValueChange[];
  onReset?: () => void;
}

/** The changes so far, beside the form in which they are made, and what becomes of them. */
export function ChangesBeside({ changes, onReset }: Props) {
  return (
    <div className={css.beside} data-changes-beside>
      <h3>{changes.length > 0 ? labelCount(changes) : messages.changes}</h3>
      <Suspense>
        <ChangesView changes={changes} onReset={changes.length > 0 ? onReset : undefined} />
      </Suspense>
      <h3>{messages.whatHappens}</h3>
      <p>{messages.whatHappensToTheEdit}</p>
    </div>
  );
}
