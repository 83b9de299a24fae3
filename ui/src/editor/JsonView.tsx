import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import {
  bracketMatching,
  codeFolding,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  syntaxHighlighting,
} from "@codemirror/language";
import { setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import { styleNonce } from "../theme";
import type { SchemaProblem } from "./checkSchema";
import css from "./Editor.module.css";
import { findSpan, locateValues, type JsonFlaw } from "./strictJson";

const SMALL = 20_000; // characters that are read again at every key
const PAUSE = 300; // milliseconds without a key before a larger text is read

interface JsonViewProps {
  text: string;
  label: string;
  flaw: JsonFlaw | null;
  problems: SchemaProblem[];
  /** Where the cursor goes first. */
  place?: string;
  /** Keys were pressed that `onText` does not know of yet. */
  onTyping: () => void;
  onText: (text: string) => void;
}

/** The draft as JSON. The text is its own while it is shown; what is typed is told when there is a pause. */
export default function JsonView({ text, label, flaw, problems, place, onTyping, onText }: JsonViewProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const tell = useRef({ onTyping, onText });
  tell.current = { onTyping, onText };
  const known = useRef(text);
  const dark = useComputedColorScheme() === "dark";
  const scheme = useRef(new Compartment());
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const say = () => {
      clearTimeout(timer);
      timer = undefined;
      known.current = made.state.doc.toString();
      tell.current.onText(known.current);
    };
    const made = new EditorView({
      parent: host.current ?? undefined,
      state: EditorState.create({
        doc: known.current,
        extensions: [
          ...EXTENSIONS,
          scheme.current.of([]),
          EditorView.contentAttributes.of({ "aria-label": label }),
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (!docChanged || state.doc.toString() === known.current) return;
            clearTimeout(timer);
            if (state.doc.length <= SMALL) return say();
            tell.current.onTyping();
            timer = setTimeout(say, PAUSE);
          }),
        ],
      }),
    });
    view.current = made;
    return () => {
      if (timer !== undefined) say();
      made.destroy();
    };
  }, [label]);
  useEffect(() => {
    view.current?.dispatch({ effects: scheme.current.reconfigure(EditorView.darkTheme.of(dark)) });
  }, [dark]);
  useEffect(() => {
    const made = view.current;
    if (!made || text === known.current) return;
    known.current = text;
    made.dispatch({ changes: { from: 0, to: made.state.doc.length, insert: text } });
  }, [text]);
  useEffect(() => {
    const made = view.current;
    if (made) made.dispatch(setDiagnostics(made.state, marks(made.state.doc.toString(), flaw, problems)));
  }, [text, flaw, problems]);
  useEffect(() => {
    const made = view.current;
    if (!made || place === undefined) return;
    const [from, to] = findSpan(locateValues(made.state.doc.toString()), place);
    made.dispatch({ selection: { anchor: from, head: to - from > SMALL ? from : to }, scrollIntoView: true });
    made.focus();
  }, [place]);
  return <div ref={host} className={css.code} />;
}

function marks(text: string, flaw: JsonFlaw | null, problems: SchemaProblem[]): Diagnostic[] {
  if (flaw) {
    const from = Math.min(flaw.at, text.length);
    return [{ from, to: Math.min(from + 1, text.length), severity: "error", message: flaw.message }];
  }
  const spans = problems.length > 0 ? locateValues(text) : new Map();
  return problems.map(({ pointer, message }) => {
    const [from, to] = findSpan(spans, pointer);
    return { from, to, severity: "error", message: `${pointer} ${message}`.trim() };
  });
}

const COLOURS = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--json-name)" },
  { tag: tags.string, color: "var(--json-text)" },
  { tag: tags.number, color: "var(--json-number)" },
  { tag: [tags.bool, tags.null], color: "var(--json-word)" },
]);
const EXTENSIONS: Extension[] = [
  EditorView.cspNonce.of(styleNonce()),
  lineNumbers(),
  codeFolding(),
  foldGutter(),
  history(),
  drawSelection(),
  highlightSpecialChars(),
  highlightActiveLine(),
  highlightSelectionMatches(),
  bracketMatching(),
  json(),
  syntaxHighlighting(COLOURS),
  search({ top: true }),
  keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, ...foldKeymap]),
  EditorView.lineWrapping,
];
