import { Text, Title } from "@mantine/core";
import { useMemo, useState } from "react";
import type { ApprovalSnapshot, Argument } from "../../api/approvals";
import { ArgumentValue } from "../../card/ArgumentValue";
import { VisibleText } from "../../card/VisibleText";
import css from "./BulkDecision.module.css";
import * as messages from "./bulkMessages";

const MAX_COLUMNS = 5; // columns; with more, each call is a block, as on a phone

/** The arguments of all calls: common ones once, differing ones in columns. */
export function Comparison({ calls }: { calls: readonly ApprovalSnapshot[] }) {
  const { same, different, cells } = useMemo(() => compareArguments(calls), [calls]);
  if (!calls.length) return null;
  return (
    <>
      {same.length > 0 && (
        <section aria-labelledby="bulk-same">
          <Title order={3} size="sm" id="bulk-same">
            {messages.identicalInAllApprovals}
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
      <table className={css.table} data-blocks={different.length > MAX_COLUMNS || undefined}>
        <caption>{different.length ? messages.differences : messages.noDifferences}</caption>
        <thead>
          <tr>
            <th scope="col">{messages.approval}</th>
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

/** Findings that do not block; alarms never get here. */
function Notes({ call }: { call: ApprovalSnapshot }) {
  return call.findings.map(({ id, message }) => (
    <Text key={id} size="xs" fw={400}>
      {messages.noteToReviewer(message)}
    </Text>
  ));
}

const MAX_UNFOLDED = 200; // characters before a value is folded

/** The value as on the card; a long one is folded. */
function Cell({ leaf }: { leaf: ArgumentCell | undefined }) {
  const [isExpanded, setExpanded] = useState(false);
  if (!leaf) return <span className={css.none}>{messages.notSet}</span>;
  const value = <ArgumentValue field={leaf.field} marked={false} />;
  if (leaf.field.text.length <= MAX_UNFOLDED) return value;
  return (
    <>
      <div className={isExpanded ? undefined : css.folded}>{value}</div>
      <button
        type="button"
        className={css.fold}
        aria-expanded={isExpanded}
        onClick={() => setExpanded(!isExpanded)}
      >
        {isExpanded ? messages.showLess : messages.showMore}
      </button>
    </>
  );
}

/** `name` is the visible path; `pointer` is exact and never shown. */
interface ArgumentColumn {
  pointer: string;
  name: string;
}

/** One argument of one call, escaped by the server. */
interface ArgumentCell extends ArgumentColumn {
  field: Argument;
}

/** Common arguments once, differing ones in columns. A cell is missing if the call has no such argument. */
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

const CONTAINERS = new Set(["object", "array"]);
const equal = ({ field: one }: ArgumentCell, { field: other }: ArgumentCell) =>
  one.text === other.text && one.type === other.type && one.sha256 === other.sha256;

/** Objects and lists are compared by their members; an empty one by itself. */
function leaves(call: ApprovalSnapshot): ArgumentCell[] {
  const names = new Map<string, string>();
  const found: ArgumentCell[] = [];
  for (const field of call.card.fields) {
    const { pointer, name, type, length } = field;
    const parentName = names.get(pointer.slice(0, pointer.lastIndexOf("/")));
    const isExpanded = parentName === undefined ? name : `${parentName} › ${name}`;
    names.set(pointer, isExpanded);
    if (!(CONTAINERS.has(type) && length > 0)) found.push({ pointer, name: isExpanded, field });
  }
  const extraTexts = messages.EXTRA_TEXTS.filter(([part]) => call.card[part]).map(
    ([part, name]): ArgumentCell => {
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
    },
  );
  return [...found, ...extraTexts];
}
