import { memo, useRef, type ReactNode } from "react";
import { parseBlocks, type Block, type ListItem } from "./blocks";
import { CopyIconButton } from "./CopyIconButton";
import type { Inline } from "./inlines";
import css from "./Markdown.module.css";
import * as messages from "./transcriptMessages";

/**
 * A model's words. Nothing that it writes can be pressed: no link, no button. The one button is ours, and copies a
 * block of code.
 */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return <div className={css.words}>{parseBlocks(text).map(blockOf)}</div>;
});

function blockOf(block: Block, key: number): ReactNode {
  switch (block.kind) {
    case "paragraph":
      return <p key={key}>{block.inlines.map(inlineOf)}</p>;
    case "heading": // the page has an order of headings, which a model has no part in
      return (
        <p key={key} data-level={Math.min(block.level, 4)}>
          <strong>{block.inlines.map(inlineOf)}</strong>
        </p>
      );
    case "code":
      return <CodeBlock key={key} language={block.language} text={block.text} />;
    case "rule":
      return <hr key={key} />;
    case "quote":
      return <blockquote key={key}>{block.blocks.map(blockOf)}</blockquote>;
    case "list":
      return listOf(block, key);
    case "table":
      return tableOf(block, key);
  }
}

function CodeBlock({ language, text }: { language: string; text: string }) {
  const code = useRef<HTMLElement>(null);
  return (
    <div className={css.code}>
      <div className={css.codeHead}>
        <span>{language}</span>
        <CopyIconButton text={text} source={code} label={messages.copyCode} />
      </div>
      <pre>
        <code ref={code}>{text}</code>
      </pre>
    </div>
  );
}

function listOf({ start, items }: Block & { kind: "list" }, key: number): ReactNode {
  const inside = items.map(itemOf);
  return start === null ? (
    <ul key={key}>{inside}</ul>
  ) : (
    <ol key={key} start={start}>
      {inside}
    </ol>
  );
}

function itemOf({ isDone, blocks }: ListItem, key: number): ReactNode {
  if (isDone === null) return <li key={key}>{blocks.map(blockOf)}</li>;
  return (
    <li key={key} data-task={isDone ? "done" : "open"}>
      <span className={css.box} role="img" aria-label={isDone ? messages.doneTask : messages.openTask} />
      {blocks.map(blockOf)}
    </li>
  );
}

/** Cells beyond the last column stay, so that no text is lost. A wide table scrolls by itself. */
function tableOf({ aligns, header, rows }: Block & { kind: "table" }, key: number): ReactNode {
  return (
    <div key={key} className={css.table} tabIndex={0} role="region" aria-label={messages.table}>
      <table>
        <thead>
          <tr>
            {header.map((cell, column) => (
              <th key={column} scope="col" data-align={aligns[column]}>
                {cell.map(inlineOf)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, column) => (
                <td key={column} data-align={aligns[column]}>
                  {cell.map(inlineOf)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inlineOf(inline: Inline, key: number): ReactNode {
  switch (inline.kind) {
    case "text":
      return inline.text;
    case "code":
      return <code key={key}>{inline.text}</code>;
    case "strong":
      return <strong key={key}>{inline.inlines.map(inlineOf)}</strong>;
    case "em":
      return <em key={key}>{inline.inlines.map(inlineOf)}</em>;
    case "image":
      return messages.imageAddress(inline.text, inline.address);
    case "link":
      return <Link key={key} address={inline.address} words={inline.inlines} />;
  }
}

/** The words, and where they would lead: people who trust it copy it. */
function Link({ address, words }: { address: string; words: Inline[] }) {
  const shown = showAddress(address);
  const place = (
    <span className={css.address} data-address>
      {shown.before}
      <b>{shown.host}</b>
      {shown.after}
    </span>
  );
  const isBare = words.length === 1 && words[0]!.kind === "text" && words[0]!.text === address;
  return isBare ? (
    place
  ) : (
    <>
      {words.map(inlineOf)} ({place})
    </>
  );
}

interface ShownAddress {
  before: string;
  /** The host that it leads to, with look-alike letters as punycode; empty if it is no address of the web. */
  host: string;
  after: string;
}

/** An address of the web around its host, which is what counts in it; everything else as it is. */
export function showAddress(address: string): ShownAddress {
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address))
    return { before: address, host: "", after: "" };
  const { href, host, protocol } = new URL(address);
  const start = href.lastIndexOf("@", href.indexOf("/", protocol.length + 2)) + 1 || protocol.length + 2;
  return { before: href.slice(0, start), host, after: href.slice(start + host.length) };
}
