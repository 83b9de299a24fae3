import { Text, Title } from "@mantine/core";
import { useMemo, useState } from "react";
import type { ApprovalSnapshot, Argument } from "../../api/approvals";
import { ArgumentValue } from "../../card/ArgumentValue";
import { VisibleText } from "../../card/VisibleText";
import css from "./BulkDecision.module.css";

const WIDEST = 5; // columns; with more each call is a block, as on a phone

/** The arguments of all calls: what they share once, what differs in columns. */
export function Comparison({ calls }: { calls: readonly ApprovalSnapshot[] }) {
  const { same, different, cells } = useMemo(() => compareArguments(calls), [calls]);
  if (!calls.length) return null;
  return (
    <>
      {same.length > 0 && (
        <section aria-labelledby="bulk-same">
          <Title order={3} size="sm" id="bulk-same">
            Identical in all requests
          </Title>
          <dl className={css.same}>
            {same.map((leaf) => (
              <div key={leaf.pointer}>
                <dt>
                  <VisibleText text={leaf.name} />
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
        <caption>{different.length ? "Differences" : "No differences except the sentence"}</caption>
        <thead>
          <tr>
            <th scope="col">Request</th>
            {different.map(({ pointer, name }) => (
              <th scope="col" key={pointer}>
                <VisibleText text={name} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {calls.map((call) => (
            <tr key={call.id} data-call={call.id}>
              <th scope="row">
                <VisibleText text={call.card.sentence} />
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
function Notes({ call }: { call: ApprovalSnapshot }) {
  return call.findings.map(({ id, message }) => (
    <Text key={id} size="xs" fw={400}>
      Note: {message}
    </Text>
  ));
}

const SHORT = 200; // characters that are shown at once

/** The value as the card shows it; a long one is folded, so that the others can be seen. */
function Cell({ leaf }: { leaf: ArgumentCell | undefined }) {
  const [whole, setWhole] = useState(false);
  if (!leaf) return <span className={css.none}>not set</span>;
  const value = <ArgumentValue field={leaf.field} marked={false} />;
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

/** `name` leads there through visible names; `pointer` is exact and is never shown. */
interface ArgumentColumn {
  pointer: string;
  name: string;
}

/** One argument of one call, as the server made it safe to show. */
interface ArgumentCell extends ArgumentColumn {
  field: Argument;
}

/** What all calls share is said once; what differs has a column. A cell is missing where a call has no such argument. */
interface ArgumentTable {
  same: ArgumentCell[];
  different: ArgumentColumn[];
  cells: ReadonlyMap<string, ReadonlyMap<string, ArgumentCell>>;
}

export function compareArguments(calls: readonly ApprovalSnapshot[]): ArgumentTable {
  const cells = new Map(
    calls.map((call) => [call.id, new Map(leaves(call).map((leaf) => [leaf.pointer, leaf]))]),
  );
  const columns = new Map(calls.flatMap(leaves).map(({ pointer, name }) => [pointer, { pointer, name }]));
  const same: ArgumentCell[] = [];
  const different: ArgumentColumn[] = [];
  for (const column of columns.values()) {
    const [first, ...rest] = calls.map((call) => cells.get(call.id)?.get(column.pointer));
    if (first && rest.every((cell) => cell && equal(cell, first))) same.push(first);
    else different.push(column);
  }
  return { same, different, cells };
}

/** What is said of a call besides its arguments, and whose words it is; no pointers: those begin with a slash. */
const SAID = [
  ["preview", "preview"],
  ["agent_description", "agent's description (unverified)"],
  ["agent_preview", "agent's preview (unverified)"],
] as const;
const CONTAINERS = new Set(["object", "array"]);
const equal = ({ field: one }: ArgumentCell, { field: other }: ArgumentCell) =>
  one.text === other.text && one.type === other.type && one.sha256 === other.sha256;

/** An object or a list is compared by what is in it; an empty one has nothing but itself. */
function leaves(call: ApprovalSnapshot): ArgumentCell[] {
  const names = new Map<string, string>();
  const found: ArgumentCell[] = [];
  for (const field of call.card.fields) {
    const { pointer, name, type, length } = field;
    const above = names.get(pointer.slice(0, pointer.lastIndexOf("/")));
    const whole = above === undefined ? name : `${above} › ${name}`;
    names.set(pointer, whole);
    if (!(CONTAINERS.has(type) && length > 0)) found.push({ pointer, name: whole, field });
  }
  const said = SAID.filter(([part]) => call.card[part]).map(([part, name]): ArgumentCell => {
    const field = {
      pointer: part,
      name,
      type: "text",
      text: call.card[part],
      length: 0,
      sha256: "",
      findings: [],
    };
    return { pointer: part, name, field };
  });
  return [...found, ...said];
}
