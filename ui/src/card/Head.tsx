import { Anchor, Badge, Group, Text, Title } from "@mantine/core";
import { Link } from "wouter";
import type { Read } from "../api/approvals";
import { Ago } from "../components/Time";
import { Countdown } from "./Countdown";
import css from "./Card.module.css";
import type { Place } from "./place";
import { Visible } from "./Text";

/** Risk, tool, one sentence, and where it comes from; all words are the server's. */
export function Head({ now, place }: { now: Read; place: Place }) {
  return (
    <header className={css.head}>
      <Group gap="xs" justify="space-between">
        <span className={css.risk} data-risk={now.card.risk}>
          {now.card.risk} risk
        </span>
        <Group gap="xs">
          {now.priority === "high" && (
            <Badge variant="outline" color="gray" c="inherit">
              urgent
            </Badge>
          )}
          <Badge variant="default" data-state={now.status}>
            {now.status}
          </Badge>
        </Group>
      </Group>
      <Title order={2} size="h4" className={css.tool}>
        <Visible text={now.card.tool} />
      </Title>
      <Text className={css.sentence}>
        <Visible text={now.card.sentence} />
      </Text>
      <Facts now={now} place={place} />
    </header>
  );
}

/** In a chat nobody needs the way to it. */
function Facts({ now, place }: { now: Read; place: Place }) {
  const facts = now.card.facts.filter(({ label }) => label !== "thread" || place !== "chat");
  return (
    <ul className={css.facts}>
      {facts.map(({ label, text }) => (
        <li key={label}>
          {WORDS[label] ?? label}{" "}
          {label === "thread" ? (
            <Anchor
              inherit
              underline="always"
              component={Link}
              href={`/chat/${encodeURIComponent(now.thread_id)}`}
            >
              <Visible text={text} />
            </Anchor>
          ) : (
            <strong>
              <Visible text={text} />
            </strong>
          )}
        </li>
      ))}
      {now.claimed_by && (
        <li data-claimed>
          <strong>{now.claimed_by}</strong> is on it
        </li>
      )}
      <li>
        {now.status === "pending" ? (
          <Countdown now={now} />
        ) : (
          <>
            asked <Ago at={now.created_at} />
          </>
        )}
      </li>
    </ul>
  );
}

const WORDS: Record<string, string> = { requester: "for", agent: "agent", thread: "thread", rule: "rule" };
