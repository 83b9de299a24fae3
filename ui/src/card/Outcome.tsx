import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { Read } from "../api/approvals";
import { write } from "../api/json";
import { Ago } from "../components/Time";
import css from "./Card.module.css";
import { Edits } from "./Changed";
import { countOf, editsOf, type Edit } from "./changes";
import type { Held } from "./held";
import { Long } from "./Long";
import { Words } from "./Text";
import { Undo } from "./Undo";
import { Unknown } from "./Unknown";

/** What became of it: who decided, when and how, and what the tool gave. */
export function Outcome({ held }: { held: Held }) {
  const { now } = held;
  const edits = editsOf(now.timeline);
  if (now.status === "pending") return null;
  return (
    <div className={css.block} data-tone={TONES[now.status]} role="status" data-outcome={now.status}>
      <Text fw={700}>{titleOf(now, edits)}</Text>
      <By now={now} />
      <Ending now={now} />
      <Edits edits={edits} />
      <Said label="Reason" text={now.decision?.reason} />
      <Said label="Comment" text={now.decision?.comment} />
      <After now={now} />
      <Undo held={held} />
      <Unknown held={held} />
    </div>
  );
}

/** "Approved with 2 changes, and done". */
function titleOf({ status, decision }: Read, edits: readonly Edit[]): string {
  const isLapsed = status === "expired" && decision !== null && decision.kind !== "expire";
  const after = isLapsed ? "not started in time" : AFTER[status];
  if (after === undefined) return ENDS[status] ?? status;
  return `Approved${edits.length ? ` with ${countOf(edits)}` : ""}, and ${after}`;
}

const AFTER: Partial<Record<Read["status"], string>> = {
  approved: "not started yet",
  running: "running",
  succeeded: "done",
  failed: "failed",
  unknown: "nobody knows whether it ran",
};

const ENDS: Partial<Record<Read["status"], string>> = {
  rejected: "Rejected",
  responded: "Answered instead of run",
  expired: "Expired: nobody decided in time",
  cancelled: "Withdrawn",
};

const TONES: Partial<Record<Read["status"], string>> = {
  approved: "good",
  running: "good",
  succeeded: "good",
  responded: "good",
  failed: "bad",
  rejected: "bad",
  unknown: "look",
};

function By({ now: { decision } }: { now: Read }) {
  if (!decision) return null;
  return (
    <Text size="sm" data-decided-by={decision.by}>
      By <strong>{decision.by}</strong>
      {decision.via && ` (${decision.via})`}, <Ago at={decision.at} />
    </Text>
  );
}

/** Who withdrew it, or looked how it ended. */
function Ending({ now }: { now: Read }) {
  const last = now.timeline.findLast(({ kind }) => kind === "cancelled" || kind === "resolved");
  if (!last) return null;
  const { note, reason } = last.content ?? {};
  return (
    <>
      <Text size="sm" data-ended-by={last.actor}>
        <strong>{last.actor}</strong> {last.kind === "cancelled" ? "withdrew it" : "looked how it ended"},{" "}
        <Ago at={last.at} />
      </Text>
      <Said label="Note" text={String(note ?? reason ?? "")} />
    </>
  );
}

function Said({ label, text }: { label: string; text: string | undefined }) {
  if (!text) return null;
  return (
    <Text size="sm">
      {label}: <Words text={text} />
    </Text>
  );
}

function After({ now }: { now: Read }): ReactNode {
  if (now.status === "failed") return <Long label="The error" text={now.error_message ?? "No message."} />;
  if (now.status === "responded") return <Long label="The answer" text={textOf(now.result)} />;
  if (now.status === "succeeded" && now.result !== null)
    return <Long label="The result" text={textOf(now.result)} />;
  return null;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : write(value, 2);
}
