import { parseInlines, type Inline } from "./inlines";

export type Block =
  | { kind: "paragraph"; inlines: Inline[] }
  | { kind: "heading"; level: number; inlines: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "rule" }
  | { kind: "quote"; blocks: Block[] }
  | { kind: "list"; start: number | null; items: ListItem[] }
  | { kind: "table"; aligns: Align[]; header: Inline[][]; rows: Inline[][][] };

export interface ListItem {
  /** Of an item of a task list; null for all others. */
  isDone: boolean | null;
  blocks: Block[];
}
export type Align = "left" | "center" | "right" | undefined;

const MOST_DEEP = 8; // lists and quotations inside each other; what goes deeper is text
const MOST_COLUMNS = 40; // of a table; a wider one is text
const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const TASK = /^\[([ xX])\](?=[ \t]|$)[ \t]*/;
const DELIMITER = /^:?-+:?$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:[ \t]+|$)/;

/** Markdown as models write it: paragraphs, headings, lists, tables, quotations and code. All else is text. */
export function parseBlocks(text: string): Block[] {
  return new Reading(text.replace(/\r\n?/g, "\n").split("\n"), 0).all();
}

class Reading {
  private at = 0;
  private blocks: Block[] = [];
  private paragraph: string[] = [];

  constructor(
    private readonly lines: string[],
    private readonly depth: number,
  ) {}

  all(): Block[] {
    while (this.at < this.lines.length) this.step(this.lines[this.at]!);
    this.endParagraph();
    return this.blocks;
  }

  private step(line: string): void {
    const isDeep = this.depth >= MOST_DEEP;
    if (!line.trim()) this.blank();
    else if (FENCE.test(line)) this.code(FENCE.exec(line)!);
    else if (HEADING.test(line)) this.heading(HEADING.exec(line)!);
    else if (RULE.test(line)) this.add({ kind: "rule" });
    else if (!isDeep && QUOTE.test(line)) this.quote();
    else if (!isDeep && this.beginsList(line)) this.list();
    else if (line.includes("|") && this.beginsTable(line)) this.table();
    else {
      this.paragraph.push(line.trim().replace(/\\$/, ""));
      this.at++;
    }
  }

  private blank(): void {
    this.endParagraph();
    this.at++;
  }

  private add(block: Block): void {
    this.endParagraph();
    this.blocks.push(block);
    this.at++;
  }

  private heading([, marks = "", text = ""]: RegExpExecArray): void {
    this.add({ kind: "heading", level: marks.length, inlines: parseInlines(text.trim()) });
  }

  private code([, fence = "", info = ""]: RegExpExecArray): void {
    let to = this.at + 1; // one that is still being said has no end yet
    while (to < this.lines.length && !closes(this.lines[to]!, fence)) to++;
    const text = this.lines.slice(this.at + 1, to).join("\n");
    this.at = to;
    this.add({ kind: "code", language: info.trim().split(/\s/, 1)[0]!.slice(0, 20), text });
  }

  private quote(): void {
    this.endParagraph();
    const inside = [];
    for (; QUOTE.test(this.lines[this.at] ?? ""); this.at++)
      inside.push(this.lines[this.at]!.replace(QUOTE, ""));
    this.blocks.push({ kind: "quote", blocks: new Reading(inside, this.depth + 1).all() });
  }

  /** A number in the middle of a paragraph may be a year at the end of a sentence. */
  private beginsList(line: string): boolean {
    const mark = ITEM.exec(line)?.[2];
    return mark !== undefined && (this.paragraph.length === 0 || !/\d/.test(mark) || /^1\D/.test(mark));
  }

  private list(): void {
    this.endParagraph();
    const first = ITEM.exec(this.lines[this.at]!)![2]!;
    const isNumbered = /\d/.test(first);
    const items = [];
    for (let mark = this.mark(); mark && /\d/.test(mark[2]!) === isNumbered; mark = this.mark())
      items.push(this.item(mark[0].length));
    this.blocks.push({ kind: "list", start: isNumbered ? Number.parseInt(first, 10) : null, items });
  }

  private mark(): RegExpExecArray | null {
    const line = this.lines[this.at] ?? "";
    return RULE.test(line) ? null : ITEM.exec(line);
  }

  /** Its own line, and those below that stand as far to the right as its words. */
  private item(indent: number): ListItem {
    const text = this.lines[this.at]!.slice(indent);
    const task = TASK.exec(text);
    const inside = [task ? text.slice(task[0].length) : text];
    for (this.at++; this.at < this.lines.length; this.at++) {
      const line = this.lines[this.at]!;
      if (line.trim() && !isIndented(line, Math.min(indent, 4))) break;
      inside.push(line.slice(Math.min(indent, indentOf(line))));
    }
    return {
      isDone: task ? task[1] !== " " : null,
      blocks: new Reading(inside, this.depth + 1).all(),
    };
  }

  /** A line of as many dashes as there are columns stands below the titles. */
  private beginsTable(line: string): boolean {
    const below = this.lines[this.at + 1] ?? "";
    if (!/^[\s|:-]+$/.test(below) || !below.includes("-")) return false;
    const marks = splitRow(below);
    return (
      marks.every((mark) => DELIMITER.test(mark)) &&
      marks.length <= MOST_COLUMNS &&
      marks.length === splitRow(line).length
    );
  }

  /** It ends with the first line without a column. */
  private table(): void {
    this.endParagraph();
    const header = this.cells();
    const aligns = splitRow(this.lines[this.at++]!).map(alignOf);
    const rows = [];
    while (this.lines[this.at]?.includes("|")) rows.push(this.cells());
    this.blocks.push({ kind: "table", aligns, header, rows });
  }

  private cells(): Inline[][] {
    return splitRow(this.lines[this.at++]!).map(parseInlines);
  }

  private endParagraph(): void {
    if (this.paragraph.length)
      this.blocks.push({ kind: "paragraph", inlines: parseInlines(this.paragraph.join("\n")) });
    this.paragraph = [];
  }
}

function closes(line: string, fence: string): boolean {
  const text = line.trim();
  return text.length >= fence.length && text === fence[0]!.repeat(text.length) && indentOf(line) < 4;
}

/** The cells of a row: what stands between its lines, of which an escaped one is text. */
function splitRow(line: string): string[] {
  const text = line.trim().replace(/^\|/, "");
  const cells: string[] = [];
  let cell = "";
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "\\" && text[at + 1] === "|") cell += text[++at];
    else if (text[at] === "|") {
      cells.push(cell.trim());
      cell = "";
    } else cell += text[at];
  }
  if (cell.trim() || cells.length === 0) cells.push(cell.trim());
  return cells;
}

function alignOf(mark: string): Align {
  if (!mark.endsWith(":")) return mark.startsWith(":") ? "left" : undefined;
  return mark.startsWith(":") ? "center" : "right";
}

function isIndented(line: string, by: number): boolean {
  return line.startsWith("\t") || indentOf(line) >= by;
}

function indentOf(line: string): number {
  const at = line.search(/[^ ]/);
  return at < 0 ? line.length : at;
}
