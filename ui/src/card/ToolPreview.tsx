import { Title } from "@mantine/core";
import { lazy, Suspense } from "react";
import css from "./ApprovalCard.module.css";
import * as messages from "./argumentMessages";
import { VisibleText } from "./VisibleText";

const MAX_DIFF = 200_000;
const TextDiff = lazy(() => import("./TextDiff"));

/** The tool's own preview of the effect. */
export function ToolPreview({ text }: { text: string }) {
  if (!text) return null;
  const whole = <VisibleText text={text} />;
  const hasSigns = text.length <= MAX_DIFF && text.includes("\\n+");
  return (
    <div role="group" aria-label={messages.preview} className={css.section}>
      <div className={css.sectionTitle}>
        <Title order={3} size="xs">
          {messages.preview}
        </Title>
        <span>{messages.fromTool}</span>
      </div>
      <div className={css.raw} data-preview>
        {hasSigns ? (
          <Suspense fallback={whole}>
            <TextDiff text={text} isPreview otherwise={whole} />
          </Suspense>
        ) : (
          whole
        )}
      </div>
    </div>
  );
}
