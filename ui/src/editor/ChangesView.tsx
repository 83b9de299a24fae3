import { Text } from "@mantine/core";
import { Fragment } from "react";
import { stringifyJson } from "../api/json";
import { VisibleText } from "../card/VisibleText";
import { visible } from "../components/visible";
import css from "./Editor.module.css";
import { splitPointer, type ValueChange } from "./values";

const MOST = 200;
const AROUND = 60; // characters of what stayed
const LONGEST = 400;

/** What would be sent otherwise than it was asked for, argument by argument. */
export default function ChangesView({ changes }: { changes: ValueChange[] }) {
  if (changes.length === 0) return <Text size="sm">No changes.</Text>;
  return (
    <>
      <dl className={css.changes} aria-label="Changes">
        {changes.slice(0, MOST).map((change) => (
          <Fragment key={change.pointer}>
            <dt className={css.name}>
              {splitPointer(change.pointer).map(visible).join(" › ") || "all arguments"}
            </dt>
            <dd>
              <OneChange change={change} />
            </dd>
          </Fragment>
        ))}
      </dl>
      {changes.length > MOST && (
        <Text size="sm">and {(changes.length - MOST).toLocaleString("en")} more changes.</Text>
      )}
    </>
  );
}

function OneChange({ change: { before, after } }: { change: ValueChange }) {
  const { gone, come } =
    typeof before === "string" && typeof after === "string"
      ? diffText(before, after)
      : { gone: partsOf(before), come: partsOf(after) };
  return (
    <>
      <del className={css.gone}>
        {before === undefined ? "not set" : <Value parts={gone} isText={typeof before === "string"} />}
      </del>
      <ins className={css.come}>
        {after === undefined ? "removed" : <Value parts={come} isText={typeof after === "string"} />}
      </ins>
    </>
  );
}

/** As on a card; what is left out is said outside of the words, which could otherwise say the same. */
function Value({ parts, isText }: { parts: TextPart[]; isText: boolean }) {
  const quote = isText && '"';
  return (
    <>
      {quote}
      {parts.map((part, index) =>
        typeof part === "number" ? (
          <span key={index} className={css.cut}>
            {part.toLocaleString("en")} characters
          </span>
        ) : (
          <VisibleText key={index} text={isText ? visible(part).replaceAll('"', '\\"') : visible(part)} />
        ),
      )}
      {quote}
    </>
  );
}

function partsOf(value: unknown): TextPart[] {
  return value === undefined ? [] : shortenText(typeof value === "string" ? value : stringifyJson(value));
}

/** A piece of a text, or how many characters are left out there. */
type TextPart = string | number;

/** Two texts without most of what they share, so that a word that changed in a long text is seen. */
export function diffText(before: string, after: string): { gone: TextPart[]; come: TextPart[] } {
  const [a, b] = [[...before], [...after]];
  const shorter = Math.min(a.length, b.length);
  let head = 0;
  while (head < shorter && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < shorter - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const from = head > AROUND * 2 ? head - AROUND : 0;
  const rest = tail > AROUND * 2 ? tail - AROUND : 0;
  const cut = (text: string[]) => [from, ...ends(text.slice(from, text.length - rest)), rest].filter(Boolean);
  return { gone: cut(a), come: cut(b) };
}

/** The two ends of a text that is too long to be read. */
export function shortenText(text: string): TextPart[] {
  return ends([...text]);
}

function ends(text: string[]): TextPart[] {
  if (text.length <= LONGEST) return [text.join("")];
  const half = LONGEST / 2;
  return [text.slice(0, half).join(""), text.length - LONGEST, text.slice(-half).join("")];
}
