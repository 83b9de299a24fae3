import { Alert, Anchor, Button, Group, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { useApproval, type ApprovalSnapshot } from "../../api/approvals";
import { stringifyJson } from "../../api/json";
import { usePageTitle } from "../../components/PageTitle";
import { ErrorMessage, Loading } from "../../components/States";
import { escapeInvisible } from "../../components/escapeInvisible";
import css from "./History.module.css";
import * as messages from "./messages";
import { StatusBadge } from "./StatusBadge";
import { RawData, Timeline } from "./Timeline";

/** The details of one call. */
export function CallDetail({ id, close }: { id: string; close: () => void }) {
  const approval = useApproval(id);
  return (
    <section className={css.detail} aria-label={messages.callDetails} tabIndex={0}>
      <Button hiddenFrom="sm" variant="default" mb="sm" mih={44} onClick={close}>
        {messages.backToList}
      </Button>
      {approval.isPending && <Loading label={messages.loadingCall} />}
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
        {approval.agent ? messages.agentNamed(escapeInvisible(approval.agent)) : messages.anAgent}
        {approval.requester && messages.forRequester(escapeInvisible(approval.requester))}
        {approval.rule && messages.ruleSuffix(escapeInvisible(approval.rule))}
      </Text>
      <Links approval={approval} />
      {erased && (
        <Alert color="gray" title={messages.contentWasErased}>
          {messages.recordRemains(erased.text)}
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
        {messages.openCard}
      </Anchor>
      {approval.thread_id.startsWith("thread-") && (
        <Anchor component={Link} href={`/chat/${encodeURIComponent(approval.thread_id)}`} size="sm">
          {messages.openChat}
        </Anchor>
      )}
      <Button size="compact-sm" variant="default" onClick={copy} aria-live="polite">
        {copied ? messages.linkCopied : messages.copyLink}
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
          <summary>{messages.argumentsWithCount(approval.card.fields.length)}</summary>
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
        <RawData name={messages.result} text={escapeInvisible(stringifyJson(approval.result))} />
      )}
    </>
  );
}
