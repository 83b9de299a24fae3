import { Title } from "@mantine/core";
import { useMemo } from "react";
import css from "./ApprovalCard.module.css";
import { readDiff, readSignedLines } from "./diffLines";
import { TextDiff } from "./TextDiff";
import { VisibleText } from "./VisibleText";

const MAX_DIFF = 200_000;

/** The tool's own preview of the effect. */
export function ToolPreview({ text }: { text: string }) {
  const diff = useMemo(
    () => (text.length <= MAX_DIFF ? (readDiff(text) ?? readSignedLines(text)) : null),
    [text],
  );
  if (!text) return null;
  return (
    <div role="group" aria-label="Preview" className={css.section}>
      <div className={css.sectionTitle}>
        <Title order={3} size="xs">
          Preview
        </Title>
        <span>from the tool</span>
      </div>
      <div className={css.raw} data-preview>
        {diff ? <TextDiff lines={diff} /> : <VisibleText text={text} />}
      </div>
    </div>
  );
}
