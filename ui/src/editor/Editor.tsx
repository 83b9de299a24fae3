import { Button, Group, Stack, Tabs, Text, UnstyledButton } from "@mantine/core";
import {
  lazy,
  Suspense,
  useCallback,
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactNode,
} from "react";
import { createPortal } from "react-dom";
import type { ApprovalSnapshot } from "../api/approvals";
import type { ApiError } from "../api/client";
import { ApproveButton } from "../card/ApproveButton";
import { isSendKey, toKeyStroke } from "../card/keys";
import { Loading } from "../components/States";
import { FormView, TextView } from "./ArgumentsView";
import { ChangesBeside } from "./ChangesBeside";
import css from "./Editor.module.css";
import { FIRST_INPUT, FIRST_PROBLEM, useFocusFirst } from "./hooks";
import * as messages from "./messages";
import { DraftNotice, readDraftStatus, RefusalNotice } from "./Notices";
import { useEditorDraft, useForgetSentDraft } from "./useEditorDraft";
import { useProblems } from "./useProblems";
import { diffValues, isObject, labelCount } from "./values";

const ChangesView = lazy(() => import("./ChangesView"));
type Tab = "form" | "json" | "changes";

interface EditorProps {
  approval: ApprovalSnapshot;
  /** The card did not appear or change just now. */
  settled: boolean;
  sending: boolean;
  refused: ApiError | null;
  /** A reason outside the draft why it cannot be sent. */
  blocked?: string;
  /** What stands above the buttons: risk and tool, where the head of the card is out of sight. */
  about?: ReactNode;
  /** Where the changes are shown while they are made. */
  changesPlace?: HTMLElement | null;
  /** Pressed before the card had settled. */
  onTooEarly?: () => void;
  onSend: (args: Record<string, unknown>) => void;
  onClose: () => void;
}

/** Edits the arguments of a call, as a form or as JSON, and approves the result. */
export default function Editor({
  approval,
  settled,
  sending,
  refused,
  blocked = "",
  about,
  changesPlace,
  onTooEarly,
  onSend,
  onClose,
}: EditorProps) {
  const id = useId();
  const root = useRef<HTMLElement>(null);
  const before = approval.args;
  const drafting = useEditorDraft(approval.id, before, approval.args_sha256);
  const { draft } = drafting;
  const changes = useMemo(() => diffValues(before, draft.value), [before, draft.value]);
  const { plan, problems, unplaced, sent } = useProblems(approval, draft.value, refused);
  const [tab, setTab] = useState<Tab>(plan ? "form" : "json");
  const [jsonPointer, setJsonPointer] = useState<string>();
  const [typing, setTyping] = useState(false);
  const [closing, setClosing] = useState(false);
  const unread = useRef(false);
  const onTyping = useCallback(() => {
    unread.current = true;
    setTyping(true);
  }, []);
  useEffect(() => setTyping(unread.current), [draft]);
  useForgetSentDraft(approval.id, refused, sent);
  useFocusFirst(root, refused ? FIRST_PROBLEM : FIRST_INPUT, refused, refused ? undefined : QUIETLY);
  useLayoutEffect(() => {
    void root.current?.closest("article")?.scrollIntoView({ block: "start" }); // newer browsers return a promise
  }, []);

  const toJson = useCallback((pointer?: string) => {
    setJsonPointer(pointer);
    setTab("json");
  }, []);
  const state = readDraftStatus(approval, draft);
  const ready =
    state === "open" &&
    !blocked &&
    !sending &&
    changes.length > 0 &&
    !draft.flaw &&
    !typing &&
    problems.length === 0 &&
    isObject(draft.value);
  const reset = state === "open" ? () => drafting.setValue(before) : undefined;
  const send = () => {
    if (!ready || !isObject(draft.value)) return;
    sent.current = draft.value;
    onSend(draft.value);
  };
  const closeEditor = () => {
    root.current?.closest("article")?.focus();
    onClose();
  };
  const focusProblem = () => findProblem(root.current)?.focus();
  const onKeyDown = (event: KeyboardEvent) => {
    if (isSendKey(toKeyStroke(event))) {
      event.preventDefault();
      event.stopPropagation();
      if (problems.length > 0) focusProblem();
      else if (!settled) onTooEarly?.();
      else if (approval.card.risk !== "high") send();
      return;
    }
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    event.stopPropagation();
    if (closing) setClosing(false);
    else close();
  };
  const close = () => (changes.length > 0 || draft.flaw ? setClosing(true) : closeEditor());

  return (
    <section
      ref={root}
      className={css.editor}
      aria-label={messages.editArguments}
      data-editor={approval.id}
      onKeyDown={onKeyDown}
    >
      <Stack gap="sm">
        <DraftNotice state={state} approval={approval} drafting={drafting} />
        {state !== "over" && (
          <RefusalNotice
            refused={refused}
            unplaced={tab === "form" ? unplaced : problems}
            problems={problems}
          />
        )}
        <Tabs value={tab} onChange={(next) => setTab((next as Tab | null) ?? "form")} keepMounted={false}>
          <Tabs.List mb="sm">
            <Tabs.Tab value="form">{messages.form}</Tabs.Tab>
            <Tabs.Tab value="json">{messages.json}</Tabs.Tab>
            <Tabs.Tab value="changes">
              {messages.changes}
              {changes.length > 0 && ` (${changes.length})`}
            </Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="form">
            <FormView {...{ id, drafting, before, plan, problems, toJson }} marked />
          </Tabs.Panel>
          <Tabs.Panel value="json">
            <TextView
              {...{ drafting, problems, unread, onTyping }}
              pointer={jsonPointer}
              label={messages.argumentsAsJson}
            />
          </Tabs.Panel>
          <Tabs.Panel value="changes">
            <Suspense fallback={<Loading />}>
              <ChangesView changes={changes} onReset={reset} />
            </Suspense>
          </Tabs.Panel>
        </Tabs>
        {closing ? (
          <DiscardPrompt
            count={labelCount(changes)}
            onKeep={closeEditor}
            onDiscard={() => {
              drafting.discard(before, approval.args_sha256);
              setTimeout(closeEditor);
            }}
            onBack={() => setClosing(false)}
          />
        ) : (
          <div className={css.foot}>
            {about}
            <ApproveButton
              approval={approval}
              what={changes.length > 0 ? messages.withChangeCount(labelCount(changes)) : messages.withChanges}
              ready={ready}
              settled={settled}
              sending={sending}
              onApprove={send}
              onTooEarly={onTooEarly}
            />
            <Button variant="default" onClick={close}>
              {messages.close}
            </Button>
            <FootNote
              blocked={blocked}
              changeCount={changes.length}
              isFlawed={Boolean(draft.flaw)}
              problemCount={problems.length}
              onProblem={focusProblem}
            />
          </div>
        )}
      </Stack>
      {changesPlace && createPortal(<ChangesBeside changes={changes} onReset={reset} />, changesPlace)}
    </section>
  );
}

const QUIETLY = { preventScroll: true }; // the editor opens at its top

function findProblem(root: HTMLElement | null): HTMLElement | null | undefined {
  const found = FIRST_PROBLEM.map((each) => root?.querySelector<HTMLElement>(each));
  return found.find((each) => each);
}

interface FootNoteProps {
  blocked: string;
  changeCount: number;
  isFlawed: boolean;
  problemCount: number;
  onProblem: () => void;
}

/** Why the edit cannot be sent, or that it is kept. */
function FootNote({ blocked, changeCount, isFlawed, problemCount, onProblem }: FootNoteProps) {
  if (blocked) return <p className={css.note}>{blocked}</p>;
  if (changeCount === 0) return isFlawed ? null : <p className={css.note}>{messages.noChangesYet}</p>;
  if (problemCount > 0)
    return (
      <p className={css.note}>
        <UnstyledButton className={css.link} onClick={onProblem}>
          {messages.fixMarkedFieldsFirst}
        </UnstyledButton>
      </p>
    );
  return <p className={css.note}>{messages.draftSavedInThisTab}</p>;
}

interface DiscardPromptProps {
  count: string;
  onKeep: () => void;
  onDiscard: () => void;
  onBack: () => void;
}

/** Asks whether to keep the changes when the editor is closed. */
function DiscardPrompt({ count, onKeep, onDiscard, onBack }: DiscardPromptProps) {
  const first = useRef<HTMLButtonElement>(null);
  useEffect(() => first.current?.focus(), []);
  return (
    <Group gap="sm" className={css.foot} role="group" aria-label={messages.closeEditor}>
      <Text size="sm" w="100%">
        {messages.youHaveChanges(count.replace(/^(\S+) /, messages.unsentPattern))}
      </Text>
      <Button ref={first} variant="default" onClick={onKeep}>
        {messages.keepChangesAndClose}
      </Button>
      <Button variant="default" onClick={onDiscard}>
        {messages.discardChanges}
      </Button>
      <Button variant="subtle" onClick={onBack}>
        {messages.continueEditing}
      </Button>
    </Group>
  );
}
