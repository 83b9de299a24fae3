import { Button } from "@mantine/core";
import css from "./Transcript.module.css";

/** Messages to choose from; a click sends one. */
export function PhraseButtons({
  label,
  phrases,
  onSend,
  isDisabled = false,
}: {
  label: string;
  phrases: string[];
  onSend: (text: string) => void;
  isDisabled?: boolean;
}) {
  return (
    <div role="group" aria-label={label} className={css.phrases}>
      {phrases.map((phrase) => (
        <Button
          key={phrase}
          variant="default"
          mih={44}
          h="auto"
          fw={500}
          classNames={{ label: css.phrase }}
          disabled={isDisabled}
          onClick={() => onSend(phrase)}
        >
          {phrase}
        </Button>
      ))}
    </div>
  );
}
