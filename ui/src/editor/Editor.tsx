import { Button, Group, Stack, Tabs, Text, Title } from "@mantine/core";
import { lazy, Suspense, useCallback, useEffect, useId, useMemo, useRef, useState } from "react";
import type { ApprovalSnapshot } from "../api/approvals";
import type { ApiError } from "../api/client";
import { ApproveButton } from "../card/ApproveButton";
import { Loading } from "../components/States";
import { FormView, TextView } from "./ArgumentsView";
import css from "./Editor.module.css";
import { FIRST_INPUT, FIRST_PROBLEM, useFocusFirst } from "./hooks";
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
  useFocusFirst(root, refused ? FIRST_PROBLEM : FIRST_INPUT, refused);

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
  const send = () => {
    if (!ready || !isObject(draft.value)) return;
    sent.current = draft.value;
    onSend(draft.value);
  };
  const closeEditor = () => {
    root.current?.closest("article")?.focus();
    onClose();
  };
  const close = () => (changes.length > 0 || draft.flaw ? setClosing(true) : closeEditor());

  return (
    <section
      ref={root}
      className={css.editor}
      aria-label="Edit arguments"
      data-editor={approval.id}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented) return;
        event.preventDefault();
        event.stopPropagation();
        if (closing) setClosing(false);
        else close();
      }}
    >
      <Stack gap="sm">
        <Title order={3} size="h5">
          Edit arguments
        </Title>
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
            <Tabs.Tab value="form">Form</Tabs.Tab>
            <Tabs.Tab value="json">JSON</Tabs.Tab>
            <Tabs.Tab value="changes">Changes{changes.length > 0 && ` (${changes.length})`}</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="form">
            <FormView {...{ id, drafting, before, plan, problems, toJson }} marked />
          </Tabs.Panel>
          <Tabs.Panel value="json">
            <TextView
              {...{ drafting, problems, unread, onTyping }}
              pointer={jsonPointer}
              label="Arguments as JSON"
            />
          </Tabs.Panel>
          <Tabs.Panel value="changes">
            <Suspense fallback={<Loading />}>
              <ChangesView changes={changes} />
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
          <Group gap="sm" className={css.foot}>
            <ApproveButton
              approval={approval}
              what={changes.length > 0 ? ` with ${labelCount(changes)}` : " with changes"}
              ready={ready}
              settled={settled}
              sending={sending}
              onApprove={send}
            />
            <Button variant="default" onClick={close}>
              Close
            </Button>
            {blocked && <Text size="sm">{blocked}</Text>}
            {changes.length === 0 && !draft.flaw && <Text size="sm">No changes yet.</Text>}
            {changes.length > 0 && problems.length > 0 && <Text size="sm">Fix the marked fields first.</Text>}
          </Group>
        )}
      </Stack>
    </section>
  );
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
    <Group gap="sm" className={css.foot} role="group" aria-label="Close the editor?">
      <Text size="sm" w="100%">
        You have {count} not sent yet.
      </Text>
      <Button ref={first} variant="default" onClick={onKeep}>
        Keep changes and close
      </Button>
      <Button variant="default" onClick={onDiscard}>
        Discard changes
      </Button>
      <Button variant="subtle" onClick={onBack}>
        Continue editing
      </Button>
    </Group>
  );
}
