import { Button, Text } from "@mantine/core";
import { Fragment } from "react";
import { stringifyJson } from "../api/json";
import { VisibleText } from "../card/VisibleText";
import { escapeInvisible, quoteVisible } from "../components/escapeInvisible";
import css from "./Editor.module.css";
import * as messages from "./messages";
import { splitPointer, type ValueChange } from "./values";

const MAX_SHOWN = 200;
const CONTEXT = 60; // characters of unchanged context
const MAX_LENGTH = 400;

/** The changes to the arguments, one by one. */
export default function ChangesView({ changes, onReset }: { changes: ValueChange[]; onReset?: () => void }) {
  if (changes.length === 0) return <Text size="sm">{messages.noChanges}</Text>;
  return (
    <>
      <dl className={css.changes} aria-label={messages.changes}>
        {changes.slice(0, MAX_SHOWN).map((change) => (
          <Fragment key={change.pointer}>
            <dt className={css.name}>{placeOf(change.pointer)}</dt>
            <dd>
              <ChangeItem change={change} />
            </dd>
          </Fragment>
        ))}
      </dl>
      {changes.length > MAX_SHOWN && (
        <Text size="sm">{messages.andMoreChanges(changes.length - MAX_SHOWN)}</Text>
      )}
      {onReset && (
        <Button mt="sm" size="compact-sm" variant="subtle" onClick={onReset}>
          {messages.resetAll}
        </Button>
      )}
    </>
  );
}

const SEPARATOR = "›";

/** The names that lead to a value; a name that could be read as several, or as none, is quoted. */
export function placeOf(pointer: string): string {
  const names = splitPointer(pointer).map((name) =>
    name.trim() === "" || name.includes(SEPARATOR) || name.startsWith('"')
      ? quoteVisible(name)
      : escapeInvisible(name),
  );
  return names.join(` ${SEPARATOR} `) || messages.allArguments;
}

function ChangeItem({ change: { before, after } }: { change: ValueChange }) {
  const { removed, added } =
    typeof before === "string" && typeof after === "string"
      ? diffText(before, after)
      : { removed: toParts(before), added: toParts(after) };
  return (
    <>
      <del className={css.gone}>
        {before === undefined ? (
          messages.notSet
        ) : (
          <Value parts={removed} isText={typeof before === "string"} />
        )}
      </del>
      <ins className={css.come}>
        {after === undefined ? messages.removed : <Value parts={added} isText={typeof after === "string"} />}
      </ins>
    </>
  );
}

/** As on a card; omitted characters are counted outside the text, which cannot imitate the count. */
function Value({ parts, isText }: { parts: TextPart[]; isText: boolean }) {
  const quote = isText && '"';
  return (
    <>
      {quote}
      {parts.map((part, index) =>
        typeof part === "number" ? (
          <span key={index} className={css.cut}>
            {messages.characterCount(part)}
          </span>
        ) : (
          <VisibleText
            key={index}
            text={isText ? escapeInvisible(part).replaceAll('"', '\\"') : escapeInvisible(part)}
          />
        ),
      )}
      {quote}
    </>
  );
}

function toParts(value: unknown): TextPart[] {
  return value === undefined ? [] : shortenText(typeof value === "string" ? value : stringifyJson(value));
}

/** A piece of text, or the number of omitted characters. */
type TextPart = string | number;

/** The removed and added text without most of the common parts. */
export function diffText(before: string, after: string): { removed: TextPart[]; added: TextPart[] } {
  const [a, b] = [[...before], [...after]];
  const shorter = Math.min(a.length, b.length);
  let head = 0;
  while (head < shorter && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < shorter - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const from = head > CONTEXT * 2 ? head - CONTEXT : 0;
  const rest = tail > CONTEXT * 2 ? tail - CONTEXT : 0;
  const toTextParts = (text: string[]) =>
    [from, ...shortenCharacters(text.slice(from, text.length - rest)), rest].filter(Boolean);
  return { removed: toTextParts(a), added: toTextParts(b) };
}

/** The two ends of a long text. */
export function shortenText(text: string): TextPart[] {
  return shortenCharacters([...text]);
}

function shortenCharacters(text: string[]): TextPart[] {
  if (text.length <= MAX_LENGTH) return [text.join("")];
  const half = MAX_LENGTH / 2;
  return [text.slice(0, half).join(""), text.length - MAX_LENGTH, text.slice(-half).join("")];
}
