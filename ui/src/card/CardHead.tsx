import { Anchor, Badge, Title } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, type ReactNode, type Ref } from "react";
import { Link } from "wouter";
import { approvalKey, type ApprovalSnapshot } from "../api/approvals";
import { IconAgents, IconChat, IconClock, IconPolicy, IconUser } from "../components/icons";
import { formatSpan, TimeAgo, useTick } from "../components/TimeAgo";
import css from "./ApprovalCard.module.css";
import * as messages from "./argumentMessages";
import { isNearExpiry, secondsLeft, shareLeft } from "./clock";
import { RiskAndTool } from "./Risk";
import { splitSentence } from "./sentence";
import { usePersonName } from "./usePersonName";
import { VisibleText } from "./VisibleText";

const REFRESH_INTERVAL = 1_500;

interface HeadProps {
  approval: ApprovalSnapshot;
  location: CardLocation;
  /** The line with risk and tool. */
  topRef?: Ref<HTMLDivElement>;
}

/** Risk, tool, time left, sentence and facts; all texts come from the server. */
export function CardHead({ approval, location, topRef }: HeadProps) {
  return (
    <header className={css.head}>
      <div className={css.top} ref={topRef}>
        <RiskAndTool approval={approval} />
        {approval.priority === "high" && (
          <Badge variant="outline" color="gray" c="inherit" tt="none" fw={560}>
            {messages.urgent}
          </Badge>
        )}
        <span className={css.topEnd}>
          {approval.status === "pending" ? (
            <Countdown approval={approval} />
          ) : (
            <Badge variant="default" tt="none" fw={560} data-state={approval.status}>
              {approval.status}
            </Badge>
          )}
        </span>
      </div>
      <Sentence card={approval.card} />
      {location === "chat" ? (
        <details className={css.moreFacts}>
          <summary>{messages.whoAskedAndWhichRule}</summary>
          <Facts approval={approval} location={location} />
        </details>
      ) : (
        <Facts approval={approval} location={location} />
      )}
    </header>
  );
}

function Sentence({ card: { sentence, fields } }: Pick<ApprovalSnapshot, "card">) {
  const parts = useMemo(() => splitSentence(sentence, fields), [sentence, fields]);
  if (!parts)
    return (
      <Title order={2} className={css.sentence}>
        <VisibleText text={sentence} />
      </Title>
    );
  return (
    <div>
      <Title order={2} className={css.sentence}>
        <VisibleText text={parts.title} />
      </Title>
      <p className={css.argumentsLine}>
        <VisibleText text={parts.digest} />
      </p>
    </div>
  );
}

/** The thread link is omitted in the chat itself. */
function Facts({ approval, location }: { approval: ApprovalSnapshot; location: CardLocation }) {
  const nameOf = usePersonName();
  const facts = approval.card.facts.filter(({ label }) => label !== "thread" || location !== "chat");
  return (
    <ul className={css.facts}>
      {facts.map(({ label, text }) => (
        <li key={label}>
          <span className={css.factIcon} aria-hidden>
            {FACT_ICONS[label]}
          </span>
          {messages.FACT_LABELS[label] ?? label}{" "}
          {label === "thread" ? (
            <Anchor
              inherit
              underline="always"
              component={Link}
              href={`/chat/${encodeURIComponent(approval.thread_id)}`}
            >
              {THREAD_ID.test(text) ? messages.open : <VisibleText text={text} />}
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
          {messages.claimedBy} <strong>{nameOf(approval.claimed_by)}</strong>
        </li>
      )}
      <li>
        <span className={css.factIcon} aria-hidden>
          <IconClock {...ICON} />
        </span>
        {messages.requested}{" "}
        <strong>
          <TimeAgo at={approval.created_at} />
        </strong>
      </li>
    </ul>
  );
}

/** An id that Interlock made, which says nothing to people. */
const THREAD_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const ICON = { size: 15, stroke: 1.75 };
const FACT_ICONS: Record<string, ReactNode> = {
  requester: <IconUser {...ICON} />,
  agent: <IconAgents {...ICON} />,
  thread: <IconChat {...ICON} />,
  rule: <IconPolicy {...ICON} />,
};

/** Time left until expiry, amber in the last fifth; after expiry it polls for the new status. */
function Countdown({ approval }: { approval: ApprovalSnapshot }) {
  const queries = useQueryClient();
  const now = useTick();
  const seconds = secondsLeft(approval, now) ?? 0;
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
      <Ring share={shareLeft(seconds, approval)} />
      {isExpired ? messages.timeIsUp : messages.timeLeft(formatSpan(seconds))}
    </span>
  );
}

const RADIUS = 5.5;
const LENGTH = 2 * Math.PI * RADIUS;

function Ring({ share }: { share: number }) {
  return (
    <svg className={css.ring} width="14" height="14" viewBox="0 0 14 14" aria-hidden>
      <circle cx="7" cy="7" r={RADIUS} />
      <circle
        cx="7"
        cy="7"
        r={RADIUS}
        strokeDasharray={`${share * LENGTH} ${LENGTH}`}
        transform="rotate(-90 7 7)"
      />
    </svg>
  );
}

/** Where a card is shown. */
export type CardLocation = "chat" | "inbox" | "page" | "modal";
