import { Alert, Anchor, Button, Group, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { useApproval, type ApprovalSnapshot } from "../../api/approvals";
import { stringifyJson } from "../../api/json";
import { usePageTitle } from "../../components/PageTitle";
import { ErrorMessage, Loading } from "../../components/States";
import { escapeInvisible } from "../../components/escapeInvisible";
import css from "./History.module.css";
import { StatusBadge } from "./StatusBadge";
import { RawData, Timeline } from "./Timeline";

/** The details of one call. */
export function CallDetail({ id, close }: { id: string; close: () => void }) {
  const approval = useApproval(id);
  return (
    <section className={css.detail} aria-label="Call details" tabIndex={0}>
      <Button hiddenFrom="sm" variant="default" mb="sm" mih={44} onClick={close}>
        Back to the list
      </Button>
      {approval.isPending && <Loading label="Loading call" />}
      {approval.error && !approval.data && (
        <ErrorMessage error={approval.error} onRetry={() => void approval.refetch()} />
      )}
      {approval.data && <CallDetails approval={approval.data} />}
    </section>
  );
}

function CallDetails({ approval }: { approval: ApprovalSnapshot }) {
  usePageTitle(approval.card.sentence);
  const erased = approval.card.facts.find((fact) => fact.label === "erased");
  return (
    <Stack gap="sm" data-story={approval.id}>
      <Group gap="xs">
        <StatusBadge status={approval.status} />
        <Text size="sm">{approval.card.tool}</Text>
      </Group>
      <Title order={2} size="h4">
        {approval.card.sentence}
      </Title>
      <Text size="sm">
        {approval.agent ? `The agent ${escapeInvisible(approval.agent)}` : "An agent"}
        {approval.requester && `, for ${escapeInvisible(approval.requester)}`}
        {approval.rule && `; rule “${escapeInvisible(approval.rule)}”`}
      </Text>
      <Links approval={approval} />
      {erased && (
        <Alert color="gray" title="The content was erased">
          {erased.text}. The record of who did what and when remains, and the ledger still proves it.
        </Alert>
      )}
      <Timeline entries={approval.timeline} />
      <Values approval={approval} />
    </Stack>
  );
}

function Links({ approval }: { approval: ApprovalSnapshot }) {
  const [copied, setCopied] = useState(false);
  const copy = () =>
    void navigator.clipboard.writeText(`${location.origin}/a/${approval.id}`).then(() => setCopied(true));
  return (
    <Group gap="md">
      <Anchor component={Link} href={`/a/${approval.id}`} size="sm">
        Open the card
      </Anchor>
      {approval.thread_id.startsWith("thread-") && (
        <Anchor component={Link} href={`/chat/${encodeURIComponent(approval.thread_id)}`} size="sm">
          Open the chat
        </Anchor>
      )}
      <Button size="compact-sm" variant="default" onClick={copy} aria-live="polite">
        {copied ? "Link copied" : "Copy link"}
      </Button>
    </Group>
  );
}

/** The current arguments and the result. */
function Values({ approval }: { approval: ApprovalSnapshot }) {
  return (
    <>
      {approval.card.fields.length > 0 && (
        <details className={css.fold}>
          <summary>Arguments ({approval.card.fields.length})</summary>
          {approval.card.fields.map((field) => (
            <Text key={field.pointer} ff="monospace" size="xs">
              {field.pointer === `/${field.name}` ? field.name : escapeInvisible(field.pointer)}: {field.text}
            </Text>
          ))}
        </details>
      )}
      {approval.error_message && (
        <Text size="sm" c="red">
          {escapeInvisible(approval.error_message)}
        </Text>
      )}
      {approval.result !== null && approval.result !== undefined && (
        <RawData name="Result" text={escapeInvisible(stringifyJson(approval.result))} />
      )}
    </>
  );
}
