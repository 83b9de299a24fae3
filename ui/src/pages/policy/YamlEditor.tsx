import { useEffect, useImperativeHandle, useRef, type Ref } from "react";
import css from "./Policy.module.css";
import { makeEditor, mark, type Editor } from "./yamlView";
import type { Complaint } from "./words";

export interface EditorHandle {
  goTo: (line: number) => void;
}

interface YamlEditorProps {
  value: string;
  complaints: Complaint[];
  onChange: (text: string) => void;
  ref?: Ref<EditorHandle>;
}

/** CodeMirror with line numbers; lines with a mistake are marked. Tab leaves it, as everywhere. */
export default function YamlEditor({ value, complaints, onChange, ref }: YamlEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor>(null);
  const change = useRef(onChange);
  change.current = onChange;
  useEffect(() => {
    if (!place.current) return;
    const made = makeEditor(place.current, value, (text) => change.current(text));
    editor.current = made;
    return () => made.destroy();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the text that it begins with; later ones are put in below
  }, []);
  useEffect(() => editor.current?.replace(value), [value]);
  useEffect(() => {
    if (editor.current) mark(editor.current.view, complaints);
  }, [complaints]);
  useImperativeHandle(ref, () => ({ goTo: (line) => editor.current?.goTo(line) }), []);
  return <div ref={place} className={css.editor} />;
}
