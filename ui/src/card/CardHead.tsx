import { Anchor, Badge, Group, Text, Title } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { Link } from "wouter";
import { approvalKey, type ApprovalSnapshot } from "../api/approvals";
import { formatSpan, TimeAgo, useTick } from "../components/TimeAgo";
import css from "./ApprovalCard.module.css";
import { isNearExpiry, secondsLeft } from "./clock";
import { VisibleText } from "./VisibleText";

const REFRESH_INTERVAL = 1_500;

/** Risk, tool, sentence and facts; all texts come from the server. */
export function CardHead({ approval, location }: { approval: ApprovalSnapshot; location: CardLocation }) {
  return (
    <header className={css.head}>
      <Group gap="xs" justify="space-between">
        <span className={css.risk} data-risk={approval.card.risk}>
          {approval.card.risk} risk
        </span>
        <Group gap="xs">
          {approval.priority === "high" && (
            <Badge variant="outline" color="gray" c="inherit">
              urgent
            </Badge>
          )}
          <Badge variant="default" data-state={approval.status}>
            {approval.status}
          </Badge>
        </Group>
      </Group>
      <Title order={2} size="h4" className={css.tool}>
        <VisibleText text={approval.card.tool} />
      </Title>
      <Text className={css.sentence}>
        <VisibleText text={approval.card.sentence} />
      </Text>
      <Facts approval={approval} location={location} />
    </header>
  );
}

/** The thread link is omitted in the chat itself. */
function Facts({ approval, location }: { approval: ApprovalSnapshot; location: CardLocation }) {
  const facts = approval.card.facts.filter(({ label }) => label !== "thread" || location !== "chat");
  return (
    <ul className={css.facts}>
      {facts.map(({ label, text }) => (
        <li key={label}>
          {FACT_LABELS[label] ?? label}{" "}
          {label === "thread" ? (
            <Anchor
              inherit
              underline="always"
              component={Link}
              href={`/chat/${encodeURIComponent(approval.thread_id)}`}
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
      {approval.claimed_by && (
        <li data-claimed>
          claimed by <strong>{approval.claimed_by}</strong>
        </li>
      )}
      <li>
        {approval.status === "pending" ? (
          <Countdown approval={approval} />
        ) : (
          <>
            requested <TimeAgo at={approval.created_at} />
          </>
        )}
      </li>
    </ul>
  );
}

const FACT_LABELS: Record<string, string> = {
  requester: "for",
  agent: "agent",
  thread: "thread",
  rule: "rule",
};

/** Time left until expiry, amber in the last fifth; after expiry it polls for the new status. */
function Countdown({ approval }: { approval: ApprovalSnapshot }) {
  const queries = useQueryClient();
  const seconds = secondsLeft(approval, useTick()) ?? 0;
  const isExpired = seconds <= 0;
  useEffect(() => {
    if (!isExpired) return;
    const refresh = () => void queries.invalidateQueries({ queryKey: approvalKey(approval.id) });
    refresh();
    const timer = setInterval(refresh, REFRESH_INTERVAL);
    return () => clearInterval(timer);
  }, [isExpired, queries, approval.id]);
  return (
    <span className={css.left} data-late={isNearExpiry(seconds, approval) || undefined}>
      {isExpired ? "time is up" : `${formatSpan(seconds)} left`}
    </span>
  );
}

/** Where a card is shown. */
export type CardLocation = "chat" | "inbox" | "page" | "modal";
