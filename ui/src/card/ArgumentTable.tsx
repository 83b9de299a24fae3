import { useMemo } from "react";
import type { Argument } from "../api/approvals";
import * as messages from "./argumentMessages";
import type { ArgumentLine, PlacedArgument } from "./argumentRows";
import { ArgumentName, HiddenArguments } from "./Arguments";
import css from "./Arguments.module.css";
import { ArgumentValue } from "./ArgumentValue";

interface TableProps {
  /** The items and their members, and gaps between them. */
  lines: readonly ArgumentLine[];
  isMarked: (field: Argument) => boolean;
  onMore: () => void;
}

/** A list of objects: a row for each, a column for every name. Where there is no room, a block for each. */
export function ArgumentTable({ lines, isMarked, onMore }: TableProps) {
  const { columns, rows } = useMemo(() => readTable(lines), [lines]);
  return (
    <table className={css.table} data-columns={sizeOf(columns.length)}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.field.name} scope="col" data-number={column.isNumeric || undefined}>
              <ArgumentName row={column} marked={isMarked(column.field)} />
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) =>
          "hiddenCount" in row ? (
            <tr key={`behind ${row.from}`}>
              <td colSpan={columns.length} className={css.gap}>
                <HiddenArguments count={row.hiddenCount} onMore={onMore} />
              </td>
            </tr>
          ) : (
            <tr key={row.pointer} data-item={row.pointer}>
              {columns.map((column) => (
                <Cell
                  key={column.field.name}
                  column={column}
                  cell={row.cells.get(column.field.name)}
                  isMarked={isMarked}
                />
              ))}
            </tr>
          ),
        )}
      </tbody>
    </table>
  );
}

interface CellProps {
  column: Column;
  cell: Argument | undefined;
  isMarked: (field: Argument) => boolean;
}

/** The name is repeated for narrow screens, where there is no line of names. */
function Cell({ column, cell, isMarked }: CellProps) {
  return (
    <td data-alarm={cell?.findings.length ? true : undefined} data-number={column.isNumeric || undefined}>
      <span className={css.cellName} aria-hidden>
        <ArgumentName row={column} marked={false} />
      </span>
      {cell ? (
        <ArgumentValue field={cell} marked={isMarked(cell)} />
      ) : (
        <span className={css.absent}>{messages.notSet}</span>
      )}
    </td>
  );
}

interface Column extends Pick<PlacedArgument, "title" | "field"> {
  isNumeric: boolean;
}

interface ItemCells {
  pointer: string;
  cells: Map<string, Argument>;
}

type TableRow = ItemCells | Extract<ArgumentLine, { hiddenCount: number }>;

function readTable(lines: readonly ArgumentLine[]): { columns: Column[]; rows: TableRow[] } {
  const columns = new Map<string, Column>();
  const rows: TableRow[] = [];
  for (const line of lines) {
    if (!("row" in line)) {
      rows.push(line);
      continue;
    }
    const { field, title, index, tableRow } = line.row;
    if (index === tableRow) {
      rows.push({ pointer: field.pointer, cells: new Map() });
      continue;
    }
    const last = rows.at(-1);
    if (last && "cells" in last) last.cells.set(field.name, field);
    const column = columns.get(field.name);
    if (column) column.isNumeric &&= field.type === "number";
    else columns.set(field.name, { field, title, isNumeric: field.type === "number" });
  }
  return { columns: [...columns.values()], rows };
}

/** How much room the columns need, for the style sheet. */
function sizeOf(columns: number): string {
  if (columns <= 3) return "few";
  return columns <= 6 ? "some" : "many";
}
