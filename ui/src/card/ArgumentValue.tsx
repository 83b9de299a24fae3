import { Button, Text } from "@mantine/core";
import { useMemo, useState } from "react";
import type { Argument } from "../api/approvals";
import css from "./Arguments.module.css";
import { shortenMiddle, VisibleText } from "./VisibleText";

const MAX_FULL_LENGTH = 2_000; // longest text that is shown completely
const HEAD = 600;
const TAIL = 300;
const STEP = 20_000; // characters added per click, to keep the page responsive

/** One stored value; a long one is shortened to its ends, length and digest until it is expanded. */
export function ArgumentValue({ field, marked }: { field: Argument; marked: boolean }) {
  const [headLength, setHeadLength] = useState(HEAD);
  const { text, length, sha256, type } = field;
  const shortened = useMemo(
    () =>
      text.length <= MAX_FULL_LENGTH
        ? shortenMiddle(text, MAX_FULL_LENGTH, MAX_FULL_LENGTH)
        : shortenMiddle(text, headLength, TAIL),
    [text, headLength],
  );
  return (
    <div className={css.value} data-type={type} data-pointer={field.pointer}>
      <span data-value>
        <VisibleText text={shortened.head} marked={marked} />
      </span>
      {shortened.hidden > 0 && (
        <span className={css.cut}>
          <Button variant="default" size="compact-sm" onClick={() => setHeadLength(nextLength(headLength))}>
            {text.length <= STEP
              ? `Show all ${length.toLocaleString("en")} characters`
              : `Show ${Math.min(STEP, shortened.hidden).toLocaleString("en")} of ${shortened.hidden.toLocaleString("en")} hidden characters`}
          </Button>
        </span>
      )}
      {shortened.tail && (
        <span data-tail>
          <VisibleText text={shortened.tail} marked={marked} />
        </span>
      )}
      {sha256 && (
        <Text size="xs" className={css.digest}>
          {length.toLocaleString("en")} characters, SHA-256 {sha256}
        </Text>
      )}
    </div>
  );
}

function nextLength(headLength: number): number {
  return headLength < STEP ? STEP : headLength + STEP;
}
