import { Button } from "@mantine/core";
import { useState } from "react";
import { IconQuote, IconUnfold } from "../../components/icons";
import { useNearScreen } from "../../components/useNearScreen";
import { CopyIconButton } from "./CopyIconButton";
import { Markdown } from "./Markdown";
import css from "./Message.module.css";
import * as messages from "./transcriptMessages";

const MAX_LENGTH = 20_000; // characters shown before "Show all"
const MAX_STREAMED = 8_000; // characters rendered as Markdown while the reply streams in

/** A message of the user, as typed. */
export function UserMessage({ text }: { text: string }) {
  return (
    <div className={css.said} data-said dir="auto">
      <span className={css.who}>{messages.youSaid} </span>
      <LongText text={text}>{(shown) => shown}</LongText>
    </div>
  );
}

/** A reply of the model; rendered as Markdown only near the viewport and while it is short enough. */
export function ModelMessage({ text, isComplete }: { text: string; isComplete: boolean }) {
  const [container, isNear] = useNearScreen<HTMLDivElement>();
  const isRich = isNear && (isComplete || text.length < MAX_STREAMED);
  return (
    <div className={css.answer}>
      <div className={css.reply} ref={container} data-reply={isComplete ? "whole" : "saying"} dir="auto">
        <span className={css.who}>{messages.agentSays} </span>
        <LongText text={text}>
          {(shown) => (isRich ? <Markdown text={shown} /> : <div className={css.plain}>{shown}</div>)}
        </LongText>
      </div>
      {isComplete && isNear && (
        <div className={css.tools}>
          <CopyIconButton text={text} source={container} label={messages.copyAnswer} />
        </div>
      )}
    </div>
  );
}

/** What the agent says beside a question of ours: folded, and marked as its own words. */
export function AgentAside({ text }: { text: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className={css.aside} onToggle={(event) => setOpen(event.currentTarget.open)} data-aside>
      <summary>
        <IconUnfold className={css.chevron} size={16} />
        <IconQuote size={16} />
        <b>{messages.agentsExplanation}</b>
        <span>{messages.notVerifiedCharacters(text.length)}</span>
      </summary>
      {isOpen && <ModelMessage text={text} isComplete />}
    </details>
  );
}

function LongText({ text, children }: { text: string; children: (shown: string) => React.ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  if (text.length <= MAX_LENGTH || isOpen) return children(text);
  return (
    <>
      {children(text.slice(0, MAX_LENGTH))}
      <div>
        <Button className={css.more} variant="default" size="xs" mih={44} onClick={() => setOpen(true)}>
          {messages.showAllCharacters(text.length)}
        </Button>
      </div>
    </>
  );
}
