import { Anchor, Text } from "@mantine/core";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import * as messages from "./dialogMessages";
import { escapeInvisible } from "./escapeInvisible";
import css from "./ItemHistory.module.css";
import { TimeAgo } from "./TimeAgo";

type ItemChange = Schemas["ItemChangeJson"] & { item?: string };

/** The changes of an item, newest first: who, when, what, and the approval of a change by an agent. */
export function ItemHistory({ changes }: { changes: ItemChange[] }) {
  if (changes.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {messages.noChangesRecorded}
      </Text>
    );
  return (
    <ol className={css.changes} aria-label={messages.history}>
      {changes.map((change, place) => (
        <li key={changes.length - place}>
          <Text size="sm" component="div">
            <Author change={change} /> {messages.changedItem(change.action, change.item)}{" "}
            <TimeAgo at={change.at} />
          </Text>
          <details>
            <summary>{messages.whatChanged}</summary>
            <Diff text={change.diff} />
          </details>
        </li>
      ))}
    </ol>
  );
}

function Author({ change }: { change: ItemChange }) {
  if (change.person) return <strong>{escapeInvisible(change.person)}</strong>;
  if (!change.approval_id) return <strong>{messages.interlock}</strong>;
  return (
    <>
      <strong>{messages.anAgent}</strong>,{" "}
      <Anchor
        component={Link}
        href={`/a/${encodeURIComponent(change.approval_id)}`}
        inherit
        underline="always"
      >
        {messages.byApprovedCall}
      </Anchor>
      ,
    </>
  );
}

/** A unified diff; the signs say the same as the colors. */
function Diff({ text }: { text: string }) {
  const lines = text.split("\n").filter((line) => !/^(---|\+\+\+|@@)/.test(line));
  return (
    <pre className={css.diff}>
      {lines.map((line, number) => (
        <span key={number} data-sign={line[0]}>
          {escapeInvisible(line)}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
