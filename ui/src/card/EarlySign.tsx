import css from "./ApprovalCard.module.css";
import * as messages from "./messages";

/** Says that a key or a click came too early; always there, so that screen readers hear it. */
export function EarlySign({ isShown }: { isShown: boolean }) {
  return (
    <p className={css.early} role="status">
      {isShown && messages.oneMoment}
    </p>
  );
}
