import { IconApproved, IconRejected } from "../../components/icons";
import { useTick } from "../../components/TimeAgo";
import * as messages from "./messages";
import css from "./Toasts.module.css";
import type { ShownToast } from "./useAnnouncements";

interface Props {
  toast: ShownToast | null;
  hint: string;
  /** The selection bar is there: it is not covered. */
  isRaised: boolean;
  onUndo: () => void;
}

/** What the last decision did, with Undo for a rejection, and why the last key did nothing. */
export function Toasts({ toast, hint, isRaised, onUndo }: Props) {
  return (
    <div className={css.stack} data-raised={isRaised || undefined}>
      <div className={css.toast} data-toast="hint" data-empty={!hint || undefined}>
        <span role="status" className={css.text}>
          {hint}
        </span>
      </div>
      <div className={css.toast} data-toast={toast?.kind} data-empty={!toast || undefined}>
        <ToastIcon kind={toast?.kind} />
        <span role="status" className={css.text}>
          {toast && (
            <>
              <strong>{toast.text}</strong>
              {toast.subject && <bdi className={css.subject}> {toast.subject}</bdi>}
            </>
          )}
        </span>
        {toast?.undoMilliseconds ? <UndoButton until={toast.until} onUndo={onUndo} /> : null}
      </div>
    </div>
  );
}

function ToastIcon({ kind }: { kind: ShownToast["kind"] | undefined }) {
  if (kind === "approved") return <IconApproved size={16} stroke={1.75} aria-hidden />;
  if (kind === "rejected") return <IconRejected size={16} stroke={1.75} aria-hidden />;
  return null;
}

/** The seconds are not part of the status: they would be read out each second. */
function UndoButton({ until, onUndo }: { until: number; onUndo: () => void }) {
  const seconds = Math.max(0, Math.ceil((until - useTick()) / 1_000));
  return (
    <button type="button" className={css.undo} onClick={onUndo} aria-keyshortcuts="Z">
      {messages.undo} <kbd aria-hidden>Z</kbd>
      <span className={css.seconds} aria-hidden>
        {messages.secondsLeft(seconds)}
      </span>
    </button>
  );
}
