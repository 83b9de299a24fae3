import { useMemo, useState, type ReactNode } from "react";
import * as messages from "./argumentMessages";
import {
  foldDiff,
  markChanges,
  readDiff,
  readSignedLines,
  type DiffBlock,
  type DiffLine,
  type LinePart,
} from "./diffLines";
import css from "./TextDiff.module.css";
import { VisibleText } from "./VisibleText";

const MAX_LINES = 400; // shown at once, so that the page stays responsive
const MAX_LINE_LENGTH = 2_000; // a text with a longer line is shortened like any other text
const MIN_FOLDED_LENGTH = 2_000; // of texts that are shown completely nothing is folded

interface TextProps {
  text: string;
  marked?: boolean;
  /** Whether signs at the beginnings of lines are enough. */
  isPreview: boolean;
  /** What is shown if it is none. */
  otherwise: ReactNode;
}

/** A text that may be a diff. */
export default function TextDiff({ text, isPreview, otherwise, marked = false }: TextProps) {
  const lines = useMemo(
    () => readDiff(text) ?? (isPreview ? readSignedLines(text) : null),
    [text, isPreview],
  );
  if (!lines?.every((line) => line.text.length <= MAX_LINE_LENGTH)) return otherwise;
  return <Lines lines={lines} marked={marked} canFold={text.length > MIN_FOLDED_LENGTH} />;
}

/**
 * A diff in color and with signs. Whoever wrote it says which lines are unchanged, and nothing proves it: they are
 * folded only in a text that would be shortened anyway, and the button says whose claim it is.
 */
function Lines({ lines, marked, canFold }: { lines: DiffLine[]; marked: boolean; canFold: boolean }) {
  const [limit, setLimit] = useState(MAX_LINES);
  const [isUnfolded, setUnfolded] = useState<ReadonlySet<number>>(new Set());
  const blocks = useMemo(() => (canFold ? foldDiff(lines) : [{ lines, isFolded: false }]), [lines, canFold]);
  const parts = useMemo(() => markChanges(lines), [lines]);
  const { shown, hiddenCount } = cutBlocks(blocks, isUnfolded, limit);
  const count = (kind: DiffLine["kind"]) => lines.filter((line) => line.kind === kind).length;
  return (
    <div className={css.diff} data-diff>
      <div className={css.about}>
        <span className={css.plus}>+{count("added").toLocaleString("en")}</span>{" "}
        <span className={css.minus}>−{count("removed").toLocaleString("en")}</span>{" "}
        <span className={css.total}>{messages.lineCount(lines.length)}</span>
      </div>
      {shown.map(({ block, at }) =>
        block.isFolded && !isUnfolded.has(at) ? (
          <button
            key={at}
            type="button"
            className={css.fold}
            onClick={() => setUnfolded(new Set([...isUnfolded, at]))}
          >
            <span className={css.unfold} aria-hidden>
              ↕
            </span>
            {messages.showLinesThatDiffMarks(block.lines.length)}
          </button>
        ) : (
          <div key={at}>
            {block.lines.map((line, place) => (
              <Line key={place} line={line} parts={parts.get(line)} marked={marked} />
            ))}
          </div>
        ),
      )}
      {hiddenCount > 0 && (
        <button type="button" className={css.fold} onClick={() => setLimit(limit + MAX_LINES)}>
          {messages.showOfMoreLines(Math.min(MAX_LINES, hiddenCount), hiddenCount)}
        </button>
      )}
    </div>
  );
}

function Line({ line, parts, marked }: { line: DiffLine; parts: LinePart[] | undefined; marked: boolean }) {
  const { kind, text } = line;
  return (
    <div className={css.line} data-kind={kind}>
      <span className={css.number} data-old={line.old ?? ""} data-new={line.new ?? ""} aria-hidden />
      <span className={css.sign}>{SIGNS[kind]}</span>
      <span className={css.text} data-ends={line.ends || undefined}>
        {parts ? (
          parts.map((part, at) => (
            <span key={at} className={part.changed ? css.changed : undefined}>
              <VisibleText text={part.text} marked={marked} />
            </span>
          ))
        ) : (
          <VisibleText text={text} marked={marked} />
        )}
      </span>
    </div>
  );
}

const SIGNS: Record<DiffLine["kind"], string> = {
  added: "+",
  removed: "-",
  same: " ",
  file: "",
  place: "",
  text: "",
};

interface ShownBlock {
  block: DiffBlock;
  at: number;
}

/** Whole blocks up to a number of lines, the last one cut. */
function cutBlocks(blocks: readonly DiffBlock[], isUnfolded: ReadonlySet<number>, limit: number) {
  const shown: ShownBlock[] = [];
  let [room, hiddenCount] = [limit, 0];
  blocks.forEach((block, at) => {
    const size = block.isFolded && !isUnfolded.has(at) ? 1 : block.lines.length;
    const fitting = Math.max(0, Math.min(size, room));
    room -= size;
    if (size === 1 && fitting) shown.push({ block, at });
    else if (fitting) shown.push({ block: { ...block, lines: block.lines.slice(0, fitting) }, at });
    hiddenCount += size === 1 && !fitting ? block.lines.length : size - fitting;
  });
  return { shown, hiddenCount };
}
