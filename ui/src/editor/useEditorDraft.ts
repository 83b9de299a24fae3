import { useCallback, useEffect, useRef, useState } from "react";
import { stringifyJson } from "../api/json";
import { visibleJson } from "../components/escapeInvisible";
import { DRAFT_PREFIX, loadDraft, storeDraft } from "../components/draftStorage";
import { readStrictJson, type JsonFlaw } from "./strictJson";
import { putValue, sameValue } from "./values";

const SAVE_DELAY = 250; // milliseconds without a change

/** The draft: one value with two views, and its text while it is edited as JSON. */
export interface EditorDraft {
  value: unknown;
  /** The typed text; null if the form was used last. */
  text: string | null;
  /** The syntax error of the text; the value is then the last valid one. */
  flaw: JsonFlaw | null;
  /** The digest that the draft is based on; another digest means that somebody else edited the arguments. */
  base: string;
}

export interface DraftState {
  draft: EditorDraft;
  setValue: (value: unknown) => void;
  /** Sets the value at one pointer. */
  putAt: (pointer: string, value: unknown) => void;
  setText: (text: string) => void;
  /** Continues from the current arguments. */
  rebase: (base: string) => void;
  /** Resets the draft and removes its stored copy. */
  discard: (value: unknown, base: string) => void;
}

/** Survives closing, reloading and refusals: it is stored in this tab until it is sent or discarded. */
export function useEditorDraft(id: string, before: unknown, base: string): DraftState {
  const [draft, setDraft] = useState<EditorDraft>(() => restoreDraft(id, before) ?? newDraft(before, base));
  const latest = useRef(draft);
  latest.current = draft;
  const original = useRef(before);
  original.current = before;
  useEffect(() => {
    const timer = setTimeout(() => saveDraft(id, draft, original.current), SAVE_DELAY);
    return () => clearTimeout(timer);
  }, [id, draft]);
  useEffect(() => {
    const now = () => saveDraft(id, latest.current, original.current);
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
  const setText = useCallback((text: string) => setDraft((old) => withText(old, text)), []);
  const rebase = useCallback((now: string) => setDraft((old) => ({ ...old, base: now })), []);
  const discard = useCallback((value: unknown, now: string) => setDraft(newDraft(value, now)), []);
  return { draft, setValue, putAt, setText, rebase, discard };
}

/** Removes a sent draft when the editor closes, unless it was refused. */
export function useForgetSentDraft(id: string, refused: unknown, sent: { current: unknown }): void {
  useEffect(() => {
    if (refused) sent.current = undefined;
  }, [refused, sent]);
  useEffect(
    () => () => {
      if (sent.current !== undefined) removeDraft(id);
    },
    [id, sent],
  );
}

/** The draft as text, for the JSON view, for storing and for copying. */
export function draftText(draft: EditorDraft): string {
  return draft.text ?? visibleJson(stringifyJson(draft.value, 2));
}

function removeDraft(id: string): void {
  storeDraft(DRAFT_PREFIX + id, null);
}

function newDraft(value: unknown, base: string): EditorDraft {
  return { value, text: null, flaw: null, base };
}

function withText(old: EditorDraft, text: string): EditorDraft {
  const reading = readStrictJson(text);
  return reading.flaw
    ? { ...old, text, flaw: reading.flaw }
    : { ...old, text, flaw: null, value: sameValue(reading.value, old.value) ? old.value : reading.value };
}

function saveDraft(id: string, draft: EditorDraft, before: unknown): void {
  if (!draft.flaw && sameValue(draft.value, before)) return removeDraft(id);
  storeDraft(DRAFT_PREFIX + id, { base: draft.base, text: draftText(draft) });
}

function restoreDraft(id: string, before: unknown): EditorDraft | null {
  const { base, text } = (loadDraft(DRAFT_PREFIX + id) ?? {}) as { base?: unknown; text?: unknown };
  if (typeof base !== "string" || typeof text !== "string") return null;
  const draft = withText(newDraft(before, base), text);
  if (draft.flaw || !sameValue(draft.value, before)) return draft;
  removeDraft(id); // it equals the current arguments
  return null;
}
