import { Anchor, Badge, Group, Text, Title } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { Link } from "wouter";
import { approvalKey, type ApprovalSnapshot } from "../api/approvals";
import { formatSpan, TimeAgo, useTick } from "../components/TimeAgo";
import css from "./ApprovalCard.module.css";
import { isNearExpiry, secondsLeft } from "./clock";
import { VisibleText } from "./VisibleText";

const LOOK_AGAIN = 1_500;

/** Risk, tool, one sentence, and where it comes from; all words are the server's. */
export function CardHead({ now, place }: { now: ApprovalSnapshot; place: CardLocation }) {
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
        <VisibleText text={now.card.tool} />
      </Title>
      <Text className={css.sentence}>
        <VisibleText text={now.card.sentence} />
      </Text>
      <Facts now={now} place={place} />
    </header>
  );
}

/** In a chat nobody needs the way to it. */
function Facts({ now, place }: { now: ApprovalSnapshot; place: CardLocation }) {
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
              <VisibleText text={text} />
            </Anchor>
          ) : (
            <strong>
              <VisibleText text={text} />
            </strong>
          )}
        </li>
      ))}
      {now.claimed_by && (
        <li data-claimed>
          claimed by <strong>{now.claimed_by}</strong>
        </li>
      )}
      <li>
        {now.status === "pending" ? (
          <Countdown now={now} />
        ) : (
          <>
            requested <TimeAgo at={now.created_at} />
          </>
        )}
      </li>
    </ul>
  );
}

const WORDS: Record<string, string> = { requester: "for", agent: "agent", thread: "thread", rule: "rule" };

/** Time left until it expires, amber in its last fifth; at the end it looks what became of the call. */
function Countdown({ now }: { now: ApprovalSnapshot }) {
  const queries = useQueryClient();
  const left = secondsLeft(now, useTick()) ?? 0;
  const isOver = left <= 0;
  useEffect(() => {
    if (!isOver) return;
    const look = () => void queries.invalidateQueries({ queryKey: approvalKey(now.id) });
    look();
    const timer = setInterval(look, LOOK_AGAIN);
    return () => clearInterval(timer);
  }, [isOver, queries, now.id]);
  return (
    <span className={css.left} data-late={isNearExpiry(left, now) || undefined}>
      {isOver ? "time is up" : `${formatSpan(left)} left`}
    </span>
  );
}

/** Where a card is shown. */
export type CardLocation = "chat" | "inbox" | "page" | "modal";
