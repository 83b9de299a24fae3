import { Button, Group, Stack, Tabs, Text, Title } from "@mantine/core";
import { lazy, Suspense, useCallback, useEffect, useId, useMemo, useRef, useState } from "react";
import type { Read } from "../api/approvals";
import type { Refused } from "../api/client";
import { Loading } from "../components/States";
import { FormView, TextView } from "./ArgumentsView";
import { changes as changesBetween, counted } from "./changes";
import { Closing } from "./Closing";
import { useDraft, useForgetWhenTaken } from "./draft";
import css from "./Editor.module.css";
import { Meanwhile, Refusal, stateOf } from "./Notices";
import { FIRST, useFocus, WRONG } from "./focus";
import { useProblems } from "./problems";
import { isObject } from "./values";

const ChangesView = lazy(() => import("./ChangesView"));
type Tab = "form" | "json" | "changes";

export interface EditorProps {
  approval: Read;
  sending: boolean;
  refused: Refused | null;
  /** Why it cannot be sent just now, where that is not the draft's fault. */
  blocked?: string;
  onSend: (args: Record<string, unknown>) => void;
  onClose: () => void;
}

/** Change what a tool would be called with, by form or as JSON, and approve that. */
export default function Editor({ approval, sending, refused, blocked = "", onSend, onClose }: EditorProps) {
  const id = useId();
  const root = useRef<HTMLElement>(null);
  const before = approval.args;
  const drafting = useDraft(approval.id, before, approval.args_sha256);
  const { draft } = drafting;
  const changes = useMemo(() => changesBetween(before, draft.value), [before, draft.value]);
  const { plan, problems, unplaced, sent } = useProblems(approval, draft.value, refused);
  const [tab, setTab] = useState<Tab>(plan ? "form" : "json");
  const [place, setPlace] = useState<string>();
  const [typing, setTyping] = useState(false);
  const [closing, setClosing] = useState(false);
  const unread = useRef(false);
  const onTyping = useCallback(() => {
    unread.current = true;
    setTyping(true);
  }, []);
  useEffect(() => setTyping(unread.current), [draft]);
  useForgetWhenTaken(approval.id, refused, sent);
  useFocus(root, refused ? WRONG : FIRST, refused);

  const toJson = useCallback((pointer?: string) => {
    setPlace(pointer);
    setTab("json");
  }, []);
  const state = stateOf(approval, draft);
  const ready =
    state === "open" &&
    !blocked &&
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
  const leave = () => {
    root.current?.closest("article")?.focus();
    onClose();
  };
  const close = () => (changes.length > 0 || draft.flaw ? setClosing(true) : leave());

  return (
    <section
      ref={root}
      className={css.editor}
      aria-label="Edit the arguments"
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
          Edit the arguments
        </Title>
        <Meanwhile state={state} approval={approval} drafting={drafting} />
        {state !== "over" && (
          <Refusal refused={refused} unplaced={tab === "form" ? unplaced : problems} problems={problems} />
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
            <TextView {...{ drafting, problems, place, unread, onTyping }} label="Arguments as JSON" />
          </Tabs.Panel>
          <Tabs.Panel value="changes">
            <Suspense fallback={<Loading />}>
              <ChangesView changes={changes} />
            </Suspense>
          </Tabs.Panel>
        </Tabs>
        {closing ? (
          <Closing
            count={counted(changes)}
            onKeep={leave}
            onDiscard={() => {
              drafting.discard(before, approval.args_sha256);
              setTimeout(leave);
            }}
            onBack={() => setClosing(false)}
          />
        ) : (
          <Group gap="sm" className={css.foot}>
            <Button onClick={send} loading={sending} disabled={!ready}>
              {changes.length > 0 ? `Approve with ${counted(changes)}` : "Approve with changes"}
            </Button>
            <Button variant="default" onClick={close}>
              Close
            </Button>
            {blocked && <Text size="sm">{blocked}</Text>}
            {changes.length === 0 && !draft.flaw && <Text size="sm">Nothing is changed yet.</Text>}
            {changes.length > 0 && problems.length > 0 && (
              <Text size="sm">First put right what is marked.</Text>
            )}
          </Group>
        )}
      </Stack>
    </section>
  );
}
