import { Button, Text } from "@mantine/core";
import { lazy, Suspense, useMemo, useState } from "react";
import type { Argument } from "../api/approvals";
import * as messages from "./argumentMessages";
import css from "./Arguments.module.css";
import { shortenMiddle, VisibleText } from "./VisibleText";

const MAX_FULL_LENGTH = 2_000; // longest text that is shown completely
const HEAD = 600;
const TAIL = 300;
const STEP = 20_000; // characters added per click, to keep the page responsive
const MAX_BESIDE_NAME = 90; // characters of a text that stands beside its name
const MAX_DIFF = 200_000;
const TextDiff = lazy(() => import("./TextDiff"));

interface ValueProps {
  field: Argument;
  marked: boolean;
  /** Among others in one line. */
  isInline?: boolean;
}

/** One stored value; a long one is shortened to its ends, length and digest until it is expanded. */
export function ArgumentValue({ field, marked, isInline = false }: ValueProps) {
  const { text, length, sha256, type } = field;
  if (isInline)
    return (
      <span className={css.value} data-type={type} data-pointer={field.pointer}>
        <QuotedText text={text} marked={marked} />
      </span>
    );
  return (
    <div
      className={css.value}
      data-type={type}
      data-pointer={field.pointer}
      data-wide={isWide(field) || undefined}
    >
      <TextOrDiff field={field} marked={marked} />
      {type === "number" && <GroupedDigits field={field} />}
      {sha256 && (
        <Text size="xs" className={css.sum}>
          {messages.charactersWithDigest(length, sha256)}
        </Text>
      )}
    </div>
  );
}

/** What could be a diff is read by a part that is loaded on demand; if it is none, it stays a text. */
function TextOrDiff(props: { field: Argument; marked: boolean }) {
  const { type, text } = props.field;
  const whole = <ShortenedText {...props} />;
  if (type !== "string" || text.length > MAX_DIFF || !text.includes("@@ -")) return whole;
  return (
    <Suspense fallback={whole}>
      <TextDiff text={text.slice(1, -1)} isPreview={false} marked={props.marked} otherwise={whole} />
    </Suspense>
  );
}

function ShortenedText({ field: { text, length }, marked }: { field: Argument; marked: boolean }) {
  const [headLength, setHeadLength] = useState(HEAD);
  const shortened = useMemo(
    () =>
      text.length <= MAX_FULL_LENGTH
        ? shortenMiddle(text, MAX_FULL_LENGTH, MAX_FULL_LENGTH)
        : shortenMiddle(text, headLength, TAIL),
    [text, headLength],
  );
  return (
    <>
      <QuotedText text={shortened.head} marked={marked} />
      {shortened.hidden > 0 && (
        <span className={css.cut}>
          <Button variant="default" size="compact-sm" onClick={() => setHeadLength(nextLength(headLength))}>
            {text.length <= STEP
              ? messages.showAllCharacters(length)
              : messages.showOfHiddenCharacters(Math.min(STEP, shortened.hidden), shortened.hidden)}
          </Button>
        </span>
      )}
      {shortened.tail && (
        <span data-tail>
          <QuotedText text={shortened.tail} marked={marked} />
        </span>
      )}
    </>
  );
}

/** The quotation marks of a text are faint, what they hold is not. */
function QuotedText({ text, marked }: { text: string; marked: boolean }) {
  const start = text.startsWith('"') ? 1 : 0;
  const end =
    text.length > start && /(?<!\\)(?:\\\\)*"$/.test(text.slice(start)) ? text.length - 1 : text.length;
  return (
    <span data-value>
      {start > 0 && <span className={css.quote}>{'"'}</span>}
      <VisibleText text={text.slice(start, end)} marked={marked} />
      {end < text.length && <span className={css.quote}>{'"'}</span>}
    </span>
  );
}

/** "25,000" beside 25000, for numbers that are amounts and not names. */
function GroupedDigits({ field: { text, name } }: { field: Argument }) {
  if (!/^-?\d{5,15}(\.\d+)?$/.test(text) || NAMING_NUMBER.test(name)) return null;
  const [whole = "", fraction] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return <span className={css.grouped}>{fraction === undefined ? grouped : `${grouped}.${fraction}`}</span>;
}

const NAMING_NUMBER = /(^|_|-)(id|ids|number|no|code|port|year|zip|phone|version|timestamp|ts|issue|pid)$/i;

/** Whether a value takes the whole width instead of standing beside its name. */
export function isWide({ type, text, sha256 }: Argument): boolean {
  return type === "string" && (Boolean(sha256) || text.length > MAX_BESIDE_NAME || text.includes("\\n"));
}

function nextLength(headLength: number): number {
  return headLength < STEP ? STEP : headLength + STEP;
}
