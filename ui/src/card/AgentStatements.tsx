import type { ApprovalSnapshot } from "../api/approvals";
import { IconQuote, IconUnfold } from "../components/icons";
import css from "./AgentStatements.module.css";
import * as messages from "./messages";
import { countCharacters, VisibleText } from "./VisibleText";

/** The agent's own texts: folded, in a dashed frame and marked, so that they never pass for the server's. */
export function AgentStatements({ card }: { card: ApprovalSnapshot["card"] }) {
  return (
    <>
      <AgentStatement title={messages.agentsDescription} text={card.agent_description} />
      <AgentStatement title={messages.agentsPreview} text={card.agent_preview} />
      <AgentStatement title={messages.agentsExplanation} text={card.agent_says} />
    </>
  );
}

function AgentStatement({ title, text }: { title: string; text: string }) {
  if (!text) return null;
  return (
    <details className={css.statement} data-claim>
      <summary>
        <IconUnfold size={16} stroke={1.75} className={css.unfold} aria-hidden />
        <IconQuote size={16} stroke={1.75} aria-hidden />
        <span className={css.title}>{title}</span>
        <span>{messages.notVerified(countLabel(text))}</span>
      </summary>
      <blockquote className={css.words}>
        <VisibleText text={text} />
      </blockquote>
    </details>
  );
}

function countLabel(text: string): string {
  const count = countCharacters(text);
  return messages.characterCount(count);
}
