import { useCallback, useEffect, useRef, useState } from "react";
import { stringifyJson } from "../api/json";
import { visibleJson } from "../components/visible";
import { readStrictJson, type JsonFlaw } from "./strictJson";
import { putValue, sameValue } from "./values";

const PREFIX = "draft:";
const MOST = 20; // kept at a time, so that a day of edits does not fill the browser's store
const SAVED_AFTER = 250; // milliseconds without a change

/** What somebody is writing: one value with two views, and the text where it is being written as JSON. */
export interface EditorDraft {
  value: unknown;
  /** As it was typed; null while the form is what was used last. */
  text: string | null;
  /** Why the text is not read; the value is then what it was before. */
  flaw: JsonFlaw | null;
  /** What it was begun on; another digest now means that somebody else changed it. */
  base: string;
}

export interface DraftState {
  draft: EditorDraft;
  setValue: (value: unknown) => void;
  /** Changes one place of the value. */
  putAt: (pointer: string, value: unknown) => void;
  setText: (text: string) => void;
  /** Go on from what is there now. */
  rebase: (base: string) => void;
  /** As it was, with nothing kept. */
  discard: (value: unknown, base: string) => void;
}

/** Survives closing, reloading and refusals: it is kept in this tab until it is sent or thrown away. */
export function useEditorDraft(id: string, before: unknown, base: string): DraftState {
  const [draft, setDraft] = useState<EditorDraft>(() => kept(id, before) ?? fresh(before, base));
  const latest = useRef(draft);
  latest.current = draft;
  const original = useRef(before);
  original.current = before;
  useEffect(() => {
    const timer = setTimeout(() => keep(id, draft, original.current), SAVED_AFTER);
    return () => clearTimeout(timer);
  }, [id, draft]);
  useEffect(() => {
    const now = () => keep(id, latest.current, original.current);
    addEventListener("pagehide", now);
    return () => {
      removeEventListener("pagehide", now);
      now();
    };
  }, [id]);
  const setValue = useCallback(
    (value: unknown) => setDraft((old) => ({ ...old, value, text: null, flaw: null })),
    [],
  );
  const putAt = useCallback(
    (pointer: string, value: unknown) =>
      setDraft((old) => ({ ...old, value: putValue(old.value, pointer, value), text: null, flaw: null })),
    [],
  );
  const setText = useCallback((text: string) => setDraft((old) => written(old, text)), []);
  const rebase = useCallback((now: string) => setDraft((old) => ({ ...old, base: now })), []);
  const discard = useCallback((value: unknown, now: string) => setDraft(fresh(value, now)), []);
  return { draft, setValue, putAt, setText, rebase, discard };
}

/** What was taken is no draft any more, though the editor goes before it hears of it. */
export function useForgetSentDraft(id: string, refused: unknown, sent: { current: unknown }): void {
  useEffect(() => {
    if (refused) sent.current = undefined;
  }, [refused, sent]);
  useEffect(
    () => () => {
      if (sent.current !== undefined) forget(id);
    },
    [id, sent],
  );
}

/** The draft as text, for the JSON view, for keeping and for copying. */
export function draftText(draft: EditorDraft): string {
  return draft.text ?? visibleJson(stringifyJson(draft.value, 2));
}

function forget(id: string): void {
  try {
    sessionStorage.removeItem(PREFIX + id);
  } catch {
    // a browser that keeps nothing has nothing to forget
  }
}

function fresh(value: unknown, base: string): EditorDraft {
  return { value, text: null, flaw: null, base };
}

function written(old: EditorDraft, text: string): EditorDraft {
  const reading = readStrictJson(text);
  return reading.flaw
    ? { ...old, text, flaw: reading.flaw }
    : { ...old, text, flaw: null, value: sameValue(reading.value, old.value) ? old.value : reading.value };
}

function keep(id: string, draft: EditorDraft, before: unknown): void {
  if (!draft.flaw && sameValue(draft.value, before)) return forget(id);
  try {
    prune();
    sessionStorage.setItem(PREFIX + id, JSON.stringify({ base: draft.base, text: draftText(draft) }));
  } catch {
    // full, or forbidden: the draft then lives as long as the page
  }
}

function kept(id: string, before: unknown): EditorDraft | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(PREFIX + id) ?? "null") as {
      base: string;
      text: string;
    } | null;
    if (found === null) return null;
    const draft = written(fresh(before, found.base), found.text);
    if (draft.flaw || !sameValue(draft.value, before)) return draft;
  } catch {
    return null;
  }
  forget(id); // it became what is asked for now
  return null;
}

function prune(): void {
  const names = Object.keys(sessionStorage).filter((name) => name.startsWith(PREFIX));
  for (const name of names.slice(0, Math.max(0, names.length - MOST))) sessionStorage.removeItem(name);
}
