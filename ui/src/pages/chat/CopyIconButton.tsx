import { useEffect, useState, type RefObject } from "react";
import { IconCheck, IconCopy } from "../../components/icons";
import css from "./Markdown.module.css";
import * as messages from "./messages";

const SHOWN_FOR = 2_000;

/** Copies a text. Without HTTPS a page cannot write to the clipboard: then it selects what is shown of it. */
export function CopyIconButton({
  text,
  source,
  label,
}: {
  text: string;
  source: RefObject<HTMLElement | null>;
  label: string;
}) {
  const [outcome, setOutcome] = useState("");
  useEffect(() => {
    if (!outcome) return;
    const timer = setTimeout(() => setOutcome(""), SHOWN_FOR);
    return () => clearTimeout(timer);
  }, [outcome]);
  const select = () => {
    if (source.current) getSelection()?.selectAllChildren(source.current);
    setOutcome(messages.pressCtrlC);
  };
  const copy = () => {
    const clipboard = navigator.clipboard as Clipboard | undefined;
    if (clipboard) clipboard.writeText(text).then(() => setOutcome(messages.copied), select);
    else select();
  };
  return (
    <button type="button" className={css.copy} onClick={copy} title={label}>
      {outcome === messages.copied ? <IconCheck size={14} aria-hidden /> : <IconCopy size={14} aria-hidden />}
      <span role="status">{outcome}</span>
      {!outcome && <span className={css.hidden}>{label}</span>}
    </button>
  );
}
