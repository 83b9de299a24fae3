import { Text } from "@mantine/core";
import { Fragment } from "react";
import { write } from "../api/json";
import { Visible } from "../card/Text";
import type { Change } from "./changes";
import css from "./Editor.module.css";
import { difference, shortened, type Part } from "./difference";
import { steps } from "./values";
import { visible } from "../components/visible";

const MOST = 200;

/** What would be sent otherwise than it was asked for, argument by argument. */
export default function ChangesView({ changes }: { changes: Change[] }) {
  if (changes.length === 0) return <Text size="sm">Nothing is changed.</Text>;
  return (
    <>
      <dl className={css.changes} aria-label="Changes">
        {changes.slice(0, MOST).map((change) => (
          <Fragment key={change.pointer}>
            <dt className={css.name}>{steps(change.pointer).map(visible).join(" › ") || "all of it"}</dt>
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

function OneChange({ change: { before, after } }: { change: Change }) {
  const { gone, come } =
    typeof before === "string" && typeof after === "string"
      ? difference(before, after)
      : { gone: partsOf(before), come: partsOf(after) };
  return (
    <>
      <del className={css.gone}>
        {before === undefined ? "not given" : <Value parts={gone} isText={typeof before === "string"} />}
      </del>
      <ins className={css.come}>
        {after === undefined ? "removed" : <Value parts={come} isText={typeof after === "string"} />}
      </ins>
    </>
  );
}

/** As on a card; what is left out is said outside of the words, which could otherwise say the same. */
function Value({ parts, isText }: { parts: Part[]; isText: boolean }) {
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
          <Visible key={index} text={isText ? visible(part).replaceAll('"', '\\"') : visible(part)} />
        ),
      )}
      {quote}
    </>
  );
}

function partsOf(value: unknown): Part[] {
  return value === undefined ? [] : shortened(typeof value === "string" ? value : write(value));
}
