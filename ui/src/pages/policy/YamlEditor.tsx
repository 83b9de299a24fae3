import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorState, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  drawSelection,
  EditorView,
  keymap,
  lineNumbers,
  type DecorationSet,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useImperativeHandle, useRef, type Ref } from "react";
import { styleNonce } from "../../theme";
import type { PolicyProblem } from "./describePolicy";
import css from "./Policy.module.css";
import * as messages from "./tabMessages";

export interface YamlEditorHandle {
  goTo: (line: number) => void;
}

interface YamlEditorProps {
  value: string;
  /** The line that it is opened at. */
  line?: number;
  problems: PolicyProblem[];
  onChange: (text: string) => void;
  ref?: Ref<YamlEditorHandle>;
}

/** CodeMirror with line numbers; lines with a problem are marked. Tab leaves the editor. */
export default function YamlEditor({ value, line, problems, onChange, ref }: YamlEditorProps) {
  const container = useRef<HTMLDivElement>(null);
  const editor = useRef<YamlView>(null);
  const change = useRef(onChange);
  change.current = onChange;
  useEffect(() => {
    if (!container.current) return;
    const yamlView = makeYamlView(container.current, value, (text) => change.current(text));
    editor.current = yamlView;
    if (line) yamlView.goTo(line);
    return () => yamlView.destroy();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the text that it begins with; later ones are put in below
  }, []);
  useEffect(() => editor.current?.replace(value), [value]);
  useEffect(() => {
    if (editor.current) markProblems(editor.current.view, problems);
  }, [problems]);
  useImperativeHandle(ref, () => ({ goTo: (line) => editor.current?.goTo(line) }), []);
  return <div ref={container} className={css.editor} />;
}

interface YamlView {
  view: EditorView;
  replace: (text: string) => void;
  goTo: (line: number) => void;
  destroy: () => void;
}

const setProblems = StateEffect.define<PolicyProblem[]>();

/** Marks follow their lines while typing, until the next check. */
const problemMarks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(before, change) {
    const effect = change.effects.find((effect) => effect.is(setProblems));
    return effect ? markLines(change.state, effect.value as PolicyProblem[]) : before.map(change.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** Replaces a selection here: the browser would add inline styles, which the content-security policy blocks. */
const replaceSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const typed = event.inputType === "insertText" && !event.isComposing ? event.data : null;
    if (!typed || view.state.selection.main.empty) return false;
    view.dispatch(view.state.replaceSelection(typed), { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

const editorTheme = EditorView.theme({
  "&": { fontSize: "14px" },
  "&.cm-focused": { outline: "2px solid var(--mantine-primary-color-filled)", outlineOffset: "-1px" },
  ".cm-content": {
    fontFamily: "var(--mantine-font-family-monospace)",
    caretColor: "var(--mantine-color-text)",
  },
  ".cm-cursor": { borderLeftColor: "var(--mantine-color-text)" },
  ".cm-gutters": {
    background: "transparent",
    color: "var(--mantine-color-dimmed)",
    borderRight: "1px solid var(--mantine-color-default-border)",
  },
  ".cm-wrong": {
    background: "var(--mantine-color-red-light)",
    boxShadow: "inset 3px 0 0 var(--mantine-color-red-filled)",
  },
});

const colors = HighlightStyle.define([
  { tag: tags.comment, color: "var(--mantine-color-dimmed)", fontStyle: "italic" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], fontWeight: "600" },
]);

function makeYamlView(parent: HTMLElement, text: string, onChange: (text: string) => void): YamlView {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        EditorView.cspNonce.of(styleNonce()),
        lineNumbers(),
        history(),
        drawSelection(),
        yaml(),
        syntaxHighlighting(colors),
        editorTheme,
        problemMarks,
        replaceSelection,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": messages.policyAsYaml }),
        keymap.of([...defaultKeymap, ...historyKeymap]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    view,
    replace: (next) => replaceText(view, next),
    goTo: (line) => goTo(view, line),
    destroy: () => view.destroy(),
  };
}

function markProblems(view: EditorView, problems: PolicyProblem[]): void {
  view.dispatch({ effects: setProblems.of(problems) });
}

/** As one change that can be undone. */
function replaceText(view: EditorView, text: string): void {
  if (view.state.doc.toString() === text) return;
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
}

function goTo(view: EditorView, line: number): void {
  const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
  view.dispatch({
    selection: { anchor: at.from },
    effects: EditorView.scrollIntoView(at.from, { y: "center" }),
  });
  view.focus();
}

function markLines(state: EditorState, problems: PolicyProblem[]): DecorationSet {
  const lines = [...new Set(problems.map(({ line }) => line))].filter(
    (line) => line > 0 && line <= state.doc.lines,
  );
  const builder = new RangeSetBuilder<Decoration>();
  for (const line of lines.sort((a, b) => a - b)) {
    const title = problems.filter((each) => each.line === line).map(({ message }) => message);
    const from = state.doc.line(line).from;
    builder.add(from, from, Decoration.line({ class: "cm-wrong", attributes: { title: title.join("\n") } }));
  }
  return builder.finish();
}
