import { Text, Title } from "@mantine/core";
import { useMemo, useState } from "react";
import type { Read } from "../../api/approvals";
import { Visible } from "../../card/Text";
import { Value } from "../../card/Value";
import css from "./Bulk.module.css";
import { columnsOf, type Leaf } from "./columns";

const WIDEST = 5; // columns; with more each call is a block, as on a phone

/** The arguments of all calls: what they share once, what differs in columns. */
export function Comparison({ calls }: { calls: readonly Read[] }) {
  const { same, different, cells } = useMemo(() => columnsOf(calls), [calls]);
  if (!calls.length) return null;
  return (
    <>
      {same.length > 0 && (
        <section aria-labelledby="bulk-same">
          <Title order={3} size="sm" id="bulk-same">
            The same in all of them
          </Title>
          <dl className={css.same}>
            {same.map((leaf) => (
              <div key={leaf.pointer}>
                <dt>
                  <Visible text={leaf.name} />
                </dt>
                <dd>
                  <Cell leaf={leaf} />
                </dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      <table className={css.table} data-blocks={different.length > WIDEST || undefined}>
        <caption>{different.length ? "What differs" : "Nothing differs but the sentence"}</caption>
        <thead>
          <tr>
            <th scope="col">Request</th>
            {different.map(({ pointer, name }) => (
              <th scope="col" key={pointer}>
                <Visible text={name} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {calls.map((call) => (
            <tr key={call.id} data-call={call.id}>
              <th scope="row">
                <Visible text={call.card.sentence} />
                <Notes call={call} />
              </th>
              {different.map(({ pointer, name }) => (
                <td key={pointer} data-name={name}>
                  <Cell leaf={cells.get(call.id)?.get(pointer)} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

/** What is worth a second look and hinders nothing; alarms are never here. */
function Notes({ call }: { call: Read }) {
  return call.findings.map(({ id, message }) => (
    <Text key={id} size="xs" fw={400}>
      Note: {message}
    </Text>
  ));
}

const SHORT = 200; // characters that are shown at once

/** The value as the card shows it; a long one is folded, so that the others can be seen. */
function Cell({ leaf }: { leaf: Leaf | undefined }) {
  const [whole, setWhole] = useState(false);
  if (!leaf) return <span className={css.none}>not given</span>;
  const value = <Value field={leaf.field} marked={false} />;
  if (leaf.field.text.length <= SHORT) return value;
  return (
    <>
      <div className={whole ? undefined : css.folded}>{value}</div>
      <button type="button" className={css.fold} aria-expanded={whole} onClick={() => setWhole(!whole)}>
        {whole ? "Show less" : "Show more"}
      </button>
    </>
  );
}
