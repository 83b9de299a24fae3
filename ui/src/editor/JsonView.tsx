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

const MAX_INSTANT = 20_000; // largest text that is parsed on every key press
const TYPING_PAUSE = 300; // milliseconds without a key press before a larger text is parsed

interface JsonViewProps {
  text: string;
  label: string;
  flaw: JsonFlaw | null;
  problems: SchemaProblem[];
  /** The pointer to select first. */
  pointer?: string;
  /** Typed text that `onText` has not reported yet. */
  onTyping: () => void;
  onText: (text: string) => void;
}

/** The draft as JSON. The editor owns the text while it is shown, and reports it after a pause. */
export default function JsonView({ text, label, flaw, problems, pointer, onTyping, onText }: JsonViewProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const callbacks = useRef({ onTyping, onText });
  callbacks.current = { onTyping, onText };
  const currentText = useRef(text);
  const dark = useComputedColorScheme() === "dark";
  const scheme = useRef(new Compartment());
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const reportText = () => {
      clearTimeout(timer);
      timer = undefined;
      currentText.current = editorView.state.doc.toString();
      callbacks.current.onText(currentText.current);
    };
    const editorView = new EditorView({
      parent: host.current ?? undefined,
      state: EditorState.create({
        doc: currentText.current,
        extensions: [
          ...EXTENSIONS,
          scheme.current.of([]),
          EditorView.contentAttributes.of({ "aria-label": label }),
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (!docChanged || state.doc.toString() === currentText.current) return;
            clearTimeout(timer);
            if (state.doc.length <= MAX_INSTANT) return reportText();
            callbacks.current.onTyping();
            timer = setTimeout(reportText, TYPING_PAUSE);
          }),
        ],
      }),
    });
    view.current = editorView;
    return () => {
      if (timer !== undefined) reportText();
      editorView.destroy();
    };
  }, [label]);
  useEffect(() => {
    view.current?.dispatch({ effects: scheme.current.reconfigure(EditorView.darkTheme.of(dark)) });
  }, [dark]);
  useEffect(() => {
    const editorView = view.current;
    if (!editorView || text === currentText.current) return;
    currentText.current = text;
    editorView.dispatch({ changes: { from: 0, to: editorView.state.doc.length, insert: text } });
  }, [text]);
  useEffect(() => {
    const editorView = view.current;
    if (editorView)
      editorView.dispatch(
        setDiagnostics(editorView.state, toDiagnostics(editorView.state.doc.toString(), flaw, problems)),
      );
  }, [text, flaw, problems]);
  useEffect(() => {
    const editorView = view.current;
    if (!editorView || pointer === undefined) return;
    const [from, to] = findSpan(locateValues(editorView.state.doc.toString()), pointer);
    editorView.dispatch({
      selection: { anchor: from, head: to - from > MAX_INSTANT ? from : to },
      scrollIntoView: true,
    });
    editorView.focus();
  }, [pointer]);
  return <div ref={host} className={css.code} />;
}

function toDiagnostics(text: string, flaw: JsonFlaw | null, problems: SchemaProblem[]): Diagnostic[] {
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

const COLORS = HighlightStyle.define([
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
  syntaxHighlighting(COLORS),
  search({ top: true }),
  keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, ...foldKeymap]),
  EditorView.lineWrapping,
];
