import { Button, Code, Text } from "@mantine/core";
import { useState } from "react";
import { stringifyJson } from "../../api/json";
import css from "./Confirmation.module.css";
import type { TranscriptItem } from "./transcriptItems";

/**
 * A confirmation with Interlock's own text, not the model's. The buttons send the answers that one could also type.
 */
export function Confirmation({
  question,
  person,
  onSend,
}: {
  question: TranscriptItem & { kind: "confirmation" };
  /** The person who was asked; "You" for the reader. */
  person: string;
  onSend: ((text: string) => void) | null;
}) {
  const [isAnswered, setAnswered] = useState(false);
  const answer = (text: string) => {
    setAnswered(true);
    onSend?.(text);
  };
  const isOpen = question.state === "open" && onSend !== null;
  return (
    <div role="group" className={css.box} aria-label="Confirmation" data-confirmation={question.state}>
      <Text size="sm">
        <Code>{question.tool}</Code> needs your confirmation
      </Text>
      <p className={css.what}>{question.message}</p>
      {question.would !== null && question.would !== undefined && (
        <pre className={css.would} tabIndex={0} aria-label="What would happen">
          {typeof question.would === "string" ? question.would : stringifyJson(question.would, 2)}
        </pre>
      )}
      {isOpen ? (
        <div className={css.buttons}>
          <Button mih={44} disabled={isAnswered} onClick={() => answer("yes")}>
            Yes, do it
          </Button>
          <Button mih={44} variant="default" disabled={isAnswered} onClick={() => answer("no")}>
            No
          </Button>
        </div>
      ) : (
        <Text size="sm">
          {question.answer ? `${person} answered ${question.answer}.` : "This question is closed."}
        </Text>
      )}
    </div>
  );
}
