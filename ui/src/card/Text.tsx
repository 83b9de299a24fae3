import { Fragment } from "react";
import "./colors.css";
import css from "./Text.module.css";
import { visible } from "../components/visible";
import { piecesOf, type Piece } from "./pieces";

/** A text that the server made visible: its escapes as chips, its look-alike letters marked; as text it stays the same. */
export function Visible({ text, marked = false }: { text: string; marked?: boolean }) {
  return piecesOf(text, marked).map((piece, place) => <Shown key={place} piece={piece} />);
}

/** Words of people, agents and tools that come as they are: lines stay lines, and nothing in them is hidden. */
export function Words({ text }: { text: string }) {
  return (
    <span className={css.words}>
      {text.split(/\r?\n/).map((line, place) => (
        <Fragment key={place}>
          {place > 0 && "\n"}
          <Visible text={visible(line)} />
        </Fragment>
      ))}
    </span>
  );
}

function Shown({ piece: { kind, text } }: { piece: Piece }) {
  if (kind === "plain") return text;
  if (kind === "odd")
    return (
      <span className={css.odd} data-code={codeOf(text)}>
        {text}
      </span>
    );
  return <span className={css[kind]}>{text}</span>;
}

function codeOf(letter: string): string {
  return `U+${letter.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}`;
}
