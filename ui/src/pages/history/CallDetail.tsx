import { Alert, Anchor, Button, Group, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { useApproval, type ApprovalSnapshot } from "../../api/approvals";
import { stringifyJson } from "../../api/json";
import { ErrorMessage, Loading } from "../../components/States";
import { visible } from "../../components/visible";
import css from "./History.module.css";
import { StatusBadge } from "./StatusBadge";
import { RawData, Timeline } from "./Timeline";

/** One call from its beginning to its end. */
export function CallDetail({ id, close }: { id: string; close: () => void }) {
  const approval = useApproval(id);
  return (
    <section className={css.detail} aria-label="Call details" tabIndex={0}>
      <Button hiddenFrom="sm" variant="default" mb="sm" mih={44} onClick={close}>
        Back to the list
      </Button>
      {approval.isPending && <Loading what="Loading call" />}
      {approval.error && !approval.data && (
        <ErrorMessage error={approval.error} again={() => void approval.refetch()} />
      )}
      {approval.data && <Story now={approval.data} />}
    </section>
  );
}

function Story({ now }: { now: ApprovalSnapshot }) {
  const erased = now.card.facts.find((fact) => fact.label === "erased");
  return (
    <Stack gap="sm" data-story={now.id}>
      <Group gap="xs">
        <StatusBadge status={now.status} />
        <Text size="sm">{now.card.tool}</Text>
      </Group>
      <Title order={2} size="h4">
        {now.card.sentence}
      </Title>
      <Text size="sm">
        {now.agent ? `The agent ${visible(now.agent)}` : "An agent"}
        {now.requester && `, for ${visible(now.requester)}`}
        {now.rule && `; rule “${visible(now.rule)}”`}
      </Text>
      <Links now={now} />
      {erased && (
        <Alert color="gray" title="The content was erased">
          {erased.text}. The record of who did what and when remains, and the ledger still proves it.
        </Alert>
      )}
      <Timeline entries={now.timeline} />
      <Values now={now} />
    </Stack>
  );
}

function Links({ now }: { now: ApprovalSnapshot }) {
  const [copied, setCopied] = useState(false);
  const copy = () =>
    void navigator.clipboard.writeText(`${location.origin}/a/${now.id}`).then(() => setCopied(true));
  return (
    <Group gap="md">
      <Anchor component={Link} href={`/a/${now.id}`} size="sm">
        Open the card
      </Anchor>
      {now.thread_id.startsWith("thread-") && (
        <Anchor component={Link} href={`/chat/${encodeURIComponent(now.thread_id)}`} size="sm">
          Open the chat
        </Anchor>
      )}
      <Button size="compact-sm" variant="default" onClick={copy} aria-live="polite">
        {copied ? "Link copied" : "Copy link"}
      </Button>
    </Group>
  );
}

/** The arguments as they stand, and what came of them. */
function Values({ now }: { now: ApprovalSnapshot }) {
  return (
    <>
      {now.card.fields.length > 0 && (
        <details className={css.fold}>
          <summary>Arguments ({now.card.fields.length})</summary>
          {now.card.fields.map((field) => (
            <Text key={field.pointer} ff="monospace" size="xs">
              {field.pointer === `/${field.name}` ? field.name : visible(field.pointer)}: {field.text}
            </Text>
          ))}
        </details>
      )}
      {now.error_message && (
        <Text size="sm" c="red">
          {visible(now.error_message)}
        </Text>
      )}
      {now.result !== null && now.result !== undefined && (
        <RawData name="Result" text={visible(stringifyJson(now.result))} />
      )}
    </>
  );
}
