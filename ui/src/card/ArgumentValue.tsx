import { Button, Text } from "@mantine/core";
import { useMemo, useState } from "react";
import type { Argument } from "../api/approvals";
import css from "./Arguments.module.css";
import { shortenMiddle, VisibleText } from "./VisibleText";

const LONG = 2_000; // characters of a text that is shown whole
const HEAD = 600;
const TAIL = 300;
const STEP = 20_000; // characters that are shown at a time: a page with a million pieces is of no use

/** One value as it is stored; a long one by its ends, its length and its digest until somebody wants all of it. */
export function ArgumentValue({ field, marked }: { field: Argument; marked: boolean }) {
  const [wanted, setWanted] = useState(HEAD);
  const { text, length, sha256, type } = field;
  const ends = useMemo(
    () => (text.length <= LONG ? shortenMiddle(text, LONG, LONG) : shortenMiddle(text, wanted, TAIL)),
    [text, wanted],
  );
  return (
    <div className={css.value} data-type={type} data-pointer={field.pointer}>
      <span data-value>
        <VisibleText text={ends.head} marked={marked} />
      </span>
      {ends.hidden > 0 && (
        <span className={css.cut}>
          <Button variant="default" size="compact-sm" onClick={() => setWanted(next(wanted))}>
            {text.length <= STEP
              ? `Show all ${length.toLocaleString("en")} characters`
              : `Show ${Math.min(STEP, ends.hidden).toLocaleString("en")} of ${ends.hidden.toLocaleString("en")} hidden characters`}
          </Button>
        </span>
      )}
      {ends.tail && (
        <span data-tail>
          <VisibleText text={ends.tail} marked={marked} />
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

function next(wanted: number): number {
  return wanted < STEP ? STEP : wanted + STEP;
}
