import { Button, Group, Text, TextInput } from "@mantine/core";
import { lazy, Suspense } from "react";
import type { Kind } from "../api/approvals";
import { Loading } from "../components/States";
import css from "./Card.module.css";
import type { Held } from "./held";
import { HighRisk } from "./HighRisk";
import { RejectForm, RespondForm } from "./Say";
import { Words } from "./Text";

const Answer = lazy(() => import("../editor/Answer"));

/** The answers that this person may give, and why not the others. */
export function Answers({ held, isSticky }: { held: Held; isSticky: boolean }) {
  const { now, opened, may } = held;
  if (now.status !== "pending") return null;
  if (!now.may_decide.length) return <WhyNot held={held} />;
  if (isQuestion(held)) return <AnswerTo held={held} />;
  if (opened === "reject" && may("reject")) return <RejectForm held={held} />;
  if (opened === "respond" && may("respond")) return <RespondForm held={held} />;
  return (
    <>
      {may("approve") && <Comment held={held} />}
      <div className={css.answers} data-sticky={isSticky || undefined}>
        <Hint held={held} />
        <div className={css.buttons}>
          {may("approve") && <Approve held={held} />}
          {may("edit") && <Opens held={held} kind="edit" label="Edit" />}
          {may("respond") && <Opens held={held} kind="respond" label="Respond" />}
          {may("reject") && <Opens held={held} kind="reject" label="Reject" />}
        </div>
        <WhyNot held={held} />
      </div>
    </>
  );
}

/** An agent asks and people answer: nothing would run. */
export function isQuestion({ now }: Pick<Held, "now">): boolean {
  return now.decisions.length === 1 && now.decisions[0] === "respond";
}

function Approve({ held }: { held: Held }) {
  const { now, ready, settled, sending, decide } = held;
  if (now.card.risk === "high") return <HighRisk held={held} />;
  return (
    <Button
      data-answer="approve"
      disabled={!ready && !sending}
      aria-disabled={!settled || undefined}
      loading={sending === "approve"}
      onClick={() => ready && settled && decide("approve")}
    >
      Approve
    </Button>
  );
}

function Opens({ held, kind, label }: { held: Held; kind: Exclude<Kind, "approve">; label: string }) {
  return (
    <Button
      data-answer={kind}
      variant={kind === "reject" ? "outline" : "default"}
      color={kind === "reject" ? "red" : undefined}
      className={kind === "reject" ? css.reject : undefined}
      disabled={Boolean(held.change) || Boolean(held.sending)}
      title={kind === "edit" ? "Ctrl or Cmd and E" : undefined}
      onClick={() => held.open(kind)}
    >
      {label}
    </Button>
  );
}

/** Why Approve is off, in words. */
function Hint({ held: { now, looks, change, may } }: { held: Held }) {
  const left = now.alarms.filter((id) => !looks.looked.has(id)).length;
  if (!may("approve") || (!left && !change)) return null;
  return (
    <Text size="sm" role="status">
      {change
        ? "Look at the changes first."
        : `Approve is off: ${left} of ${now.alarms.length} still to look at.`}
    </Text>
  );
}

function Comment({ held: { drafts, draft } }: { held: Held }) {
  return (
    <details className={css.fold}>
      <summary>Add a comment</summary>
      <TextInput
        aria-label="Comment"
        placeholder="Kept with your answer, for people"
        maxLength={500}
        value={drafts.comment}
        onChange={(event) => draft({ comment: event.currentTarget.value })}
      />
    </details>
  );
}

/** Of the kinds that the rule allows; each reason once. */
function WhyNot({ held: { now } }: { held: Held }) {
  const reasons = new Set(now.decisions.flatMap((kind) => now.may_not[kind] ?? []));
  if (!reasons.size) return null;
  return (
    <Group gap={4} data-why-not>
      {[...reasons].map((reason) => (
        <Text key={reason} size="sm">
          <Words text={reason} />
        </Text>
      ))}
    </Group>
  );
}

function AnswerTo({ held }: { held: Held }) {
  return (
    <Suspense fallback={<Loading what="Loading the form" />}>
      <Answer
        approval={held.now}
        sending={held.sending === "respond"}
        refused={held.refused}
        onSend={(given) => held.decide("respond", { ...given })}
      />
    </Suspense>
  );
}
