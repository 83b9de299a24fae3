import { memo, type ReactNode } from "react";
import { parseBlocks, type Block } from "./blocks";
import type { Inline } from "./inlines";
import css from "./Markdown.module.css";

/** A model's words. Nothing in them can be pressed but links that say where they lead. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return <div className={css.words}>{parseBlocks(text).map(blockOf)}</div>;
});

function blockOf(block: Block, key: number): ReactNode {
  switch (block.kind) {
    case "paragraph":
      return <p key={key}>{block.inlines.map(inlineOf)}</p>;
    case "heading": // the page has an order of headings, which a model has no part in
      return (
        <p key={key}>
          <strong>{block.inlines.map(inlineOf)}</strong>
        </p>
      );
    case "code":
      return (
        <pre key={key}>
          <code>{block.text}</code>
        </pre>
      );
    case "rule":
      return <hr key={key} />;
    case "quote":
      return <blockquote key={key}>{block.blocks.map(blockOf)}</blockquote>;
    case "list":
      return listOf(block, key);
  }
}

function listOf({ start, items }: Block & { kind: "list" }, key: number): ReactNode {
  const inside = items.map((blocks, number) => <li key={number}>{blocks.map(blockOf)}</li>);
  return start === null ? (
    <ul key={key}>{inside}</ul>
  ) : (
    <ol key={key} start={start}>
      {inside}
    </ol>
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
      return `[image: ${inline.text} (${inline.address})]`;
    case "link":
      return <Leading key={key} address={inline.address} words={inline.inlines.map(inlineOf)} />;
  }
}

/** An address that is none of the web stays text. */
function Leading({ address, words }: { address: string; words: ReactNode }) {
  const link = parseWebLink(address);
  if (!link)
    return (
      <>
        {words} ({address})
      </>
    );
  return (
    <>
      <a href={link.href} target="_blank" rel="noreferrer noopener">
        {words}
      </a>{" "}
      <span className={css.host}>({link.host})</span>
    </>
  );
}

interface WebLink {
  href: string;
  /** Where it leads, with look-alike letters as punycode. */
  host: string;
}

/** An address of the web, with its host; null for everything else, and for what would lead into this page. */
export function parseWebLink(address: string | undefined): WebLink | null {
  if (!address || !/^https?:\/\//i.test(address) || !URL.canParse(address)) return null;
  const url = new URL(address);
  return { href: url.href, host: url.host };
}
