import { Text } from "@mantine/core";
import type { Read } from "../api/approvals";
import css from "./Card.module.css";
import { Visible } from "./Text";

/** What nobody but the agent's program says, each part under a name that says so. */
export function AgentWords({ card }: { card: Read["card"] }) {
  return (
    <>
      <Quoted title="Agent's description (unverified)" text={card.agent_description} />
      <Quoted title="Agent's preview (unverified)" text={card.agent_preview} />
      {card.agent_says && (
        <details className={css.fold}>
          <summary>Agent says (unverified)</summary>
          <blockquote className={css.quotation}>
            <Visible text={card.agent_says} />
          </blockquote>
        </details>
      )}
    </>
  );
}

function Quoted({ title, text }: { title: string; text: string }) {
  if (!text) return null;
  return (
    <div role="group" aria-label={title}>
      <Text size="sm" fw={600}>
        {title}
      </Text>
      <blockquote className={css.quotation} data-claim>
        <Visible text={text} />
      </blockquote>
    </div>
  );
}
