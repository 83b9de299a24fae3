import { Button, Text } from "@mantine/core";
import { useState } from "react";
import { stringifyJson } from "../../api/json";
import { ApproveButton } from "../../card/ApproveButton";
import { MultilineText, VisibleText } from "../../card/VisibleText";
import { escapeInvisible, visibleJson } from "../../components/escapeInvisible";
import { IconApproved, IconClock, IconRejected, IconUnfold } from "../../components/icons";
import { RiskLabel, riskLevelOf } from "../../components/RiskMark";
import lineCss from "./CallLine.module.css";
import css from "./Confirmation.module.css";
import type { TranscriptItem } from "./transcriptItems";
import * as messages from "./transcriptMessages";

type Question = TranscriptItem & { kind: "confirmation" };

/**
 * A confirmation with Interlock's own text, not the model's. The buttons send the answers that one could also type.
 * Once it is over, it is a line.
 */
export function Confirmation({
  question,
  person,
  onSend,
}: {
  question: Question;
  /** The person who was asked; "You" for the reader. */
  person: string;
  onSend: ((text: string) => void) | null;
}) {
  const { tool, risk } = question;
  const [isAnswered, setAnswered] = useState(false);
  const answer = (text: string) => {
    setAnswered(true);
    onSend?.(text);
  };
  if (question.state === "over") return <ClosedConfirmation question={question} person={person} />;
  return (
    <div
      role="group"
      className={css.box}
      aria-label={messages.confirmation}
      data-confirmation={question.state}
      data-open
    >
      <Details question={question} />
      {question.state === "open" && onSend && (
        <div className={css.buttons}>
          <ApproveButton
            approval={{ tool, card: { tool, risk } }}
            label={messages.yesDoIt}
            ready={!isAnswered}
            settled
            sending={false}
            onApprove={() => answer("yes")}
          />
          <Button variant="default" disabled={isAnswered} onClick={() => answer("no")}>
            {messages.no}
          </Button>
        </div>
      )}
    </div>
  );
}

function Details({ question: { tool, message, would, risk, effect } }: { question: Question }) {
  return (
    <>
      <div className={css.top}>
        <RiskLabel risk={riskLevelOf(risk, effect)} />
        <Text size="sm">
          <span className={lineCss.name}>{tool}</span> {messages.needsYourConfirmation}
        </Text>
      </div>
      <p className={css.what}>
        <MultilineText text={message} />
      </p>
      {would !== null && would !== undefined && (
        <pre className={css.would} tabIndex={0} aria-label={messages.whatWouldHappen}>
          {typeof would === "string" ? <MultilineText text={would} /> : visibleJson(stringifyJson(would, 2))}
        </pre>
      )}
    </>
  );
}

function ClosedConfirmation({ question, person }: { question: Question; person: string }) {
  const { answer, message } = question;
  const Icon = answer === "yes" ? IconApproved : answer === "no" ? IconRejected : IconClock;
  return (
    <details
      aria-label={messages.confirmation}
      className={lineCss.request}
      data-confirmation="over"
      data-tone={answer === "yes" ? "good" : answer === "no" ? "bad" : "over"}
    >
      <summary className={lineCss.line}>
        <Icon className={lineCss.icon} size={16} />
        <b>{answer ? messages.personAnswered(person, answer) : messages.thisQuestionIsClosed}</b>
        <span className={lineCss.sentence}>
          <VisibleText text={escapeInvisible(message)} />
        </span>
        <IconUnfold className={lineCss.chevron} size={16} />
      </summary>
      <div className={css.box}>
        <Details question={question} />
      </div>
    </details>
  );
}
