import { Button, Group, Radio, Stack, Tabs, Textarea } from "@mantine/core";
import { useCallback, useEffect, useId, useMemo, useRef, useState } from "react";
import type { ApprovalSnapshot } from "../api/approvals";
import type { ApiError } from "../api/client";
import { visible } from "../components/visible";
import { FormView, TextView } from "./ArgumentsView";
import { checkSchema, type SchemaProblem } from "./checkSchema";
import css from "./Editor.module.css";
import { FIRST_PROBLEM, useFocusFirst, useStableValue } from "./hooks";
import { RefusalNotice } from "./Notices";
import { useEditorDraft, useForgetSentDraft, type DraftState } from "./useEditorDraft";
import { hasField, planWithinLimits, useServerProblems } from "./useProblems";
import { isObject } from "./values";

const NOWHERE: string[] = [];

interface AnswerFormProps {
  approval: ApprovalSnapshot;
  sending: boolean;
  refused: ApiError | null;
  onSend: (given: { answer?: unknown; message?: string }) => void;
}

/** The answer to an agent's question: one of its choices, what its schema asks for, or words. */
export default function AnswerForm({ approval, sending, refused, onSend }: AnswerFormProps) {
  const asked = isObject(approval.args) ? approval.args : {};
  const schema = isObject(asked.schema) ? asked.schema : undefined;
  const choices = Array.isArray(asked.choices) ? asked.choices : undefined;
  const empty = useMemo(() => (schema ? beginning(schema) : ""), [schema]);
  const drafting = useEditorDraft(`${approval.id}:answer`, empty, approval.args_sha256);
  const { said, sent } = useServerProblems(refused, drafting.draft.value);
  useForgetSentDraft(`${approval.id}:answer`, refused, sent);
  const common = { drafting, sending };
  const send = (given: { answer?: unknown; message?: string }) => {
    sent.current = drafting.draft.value;
    onSend(given);
  };
  if (schema)
    return <BySchema {...common} {...{ schema, refused, said }} onAnswer={(answer) => send({ answer })} />;
  if (choices) return <ByChoice {...common} choices={choices} onAnswer={(answer) => send({ answer })} />;
  return <ByWords {...common} onMessage={(message) => send({ message })} />;
}

interface Common {
  drafting: DraftState;
  sending: boolean;
}

function ByChoice({
  drafting,
  sending,
  choices,
  onAnswer,
}: Common & { choices: unknown[]; onAnswer: (answer: unknown) => void }) {
  const { draft, setValue } = drafting;
  const picked = choices.findIndex((choice) => choice === draft.value);
  return (
    <Stack gap="sm" className={css.editor}>
      <Radio.Group
        label="Your answer"
        value={String(picked)}
        onChange={(index) => setValue(choices[Number(index)])}
      >
        <Stack gap="xs" mt="xs">
          {choices.map((choice, index) => (
            <Radio key={index} className={css.target} value={String(index)} label={visible(String(choice))} />
          ))}
        </Stack>
      </Radio.Group>
      <Send sending={sending} ready={picked >= 0} onSend={() => onAnswer(choices[picked])} />
    </Stack>
  );
}

function ByWords({ drafting, sending, onMessage }: Common & { onMessage: (message: string) => void }) {
  const { draft, setValue } = drafting;
  const words = typeof draft.value === "string" ? draft.value : "";
  return (
    <Stack gap="sm" className={css.editor}>
      <Textarea
        label="Your answer"
        autosize
        minRows={3}
        maxRows={16}
        value={words}
        onChange={({ currentTarget: { value } }) => setValue(value)}
      />
      <Send sending={sending} ready={words.trim() !== ""} onSend={() => onMessage(words)} />
    </Stack>
  );
}

interface BySchemaProps extends Common {
  schema: Record<string, unknown>;
  refused: ApiError | null;
  said: SchemaProblem[];
  onAnswer: (answer: unknown) => void;
}

function BySchema({ drafting, sending, schema, refused, said, onAnswer }: BySchemaProps) {
  const { draft } = drafting;
  const id = useId();
  const [tried, setTried] = useState(false);
  const [tab, setTab] = useState<string | null>("form");
  const [typing, setTyping] = useState(false);
  const unread = useRef(false);
  useEffect(() => setTyping(unread.current), [draft]);
  const plan = useMemo(() => planWithinLimits(schema, [draft.value], []), [schema, draft.value]);
  const found = useMemo(() => checkSchema(schema, draft.value), [schema, draft.value]);
  const problems = useStableValue(tried ? [...found, ...said] : []);
  const root = useRef<HTMLDivElement>(null);
  useFocusFirst(root, tried ? FIRST_PROBLEM : NOWHERE, tried && refused);
  const toJson = useCallback(() => setTab("json"), []);
  return (
    <Stack gap="sm" className={css.editor} ref={root}>
      <RefusalNotice
        refused={null}
        problems={problems}
        unplaced={problems.filter(({ pointer }) => !plan || !(pointer === "" || hasField(plan, pointer)))}
      />
      <Tabs value={tab} onChange={setTab} keepMounted={false}>
        <Tabs.List mb="sm">
          <Tabs.Tab value="form">Form</Tabs.Tab>
          <Tabs.Tab value="json">JSON</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="form">
          <FormView {...{ id, drafting, plan, problems, toJson }} before={beginning(schema)} marked={false} />
        </Tabs.Panel>
        <Tabs.Panel value="json">
          <TextView
            {...{ drafting, problems, unread }}
            label="Answer as JSON"
            onTyping={() => {
              unread.current = true;
              setTyping(true);
            }}
          />
        </Tabs.Panel>
      </Tabs>
      <Send
        sending={sending}
        ready={!draft.flaw && !typing && problems.length === 0 && draft.value !== undefined}
        onSend={() => {
          setTried(true);
          if (found.length === 0) onAnswer(draft.value);
        }}
      />
    </Stack>
  );
}

function Send({ sending, ready, onSend }: { sending: boolean; ready: boolean; onSend: () => void }) {
  return (
    <Group className={css.foot}>
      <Button onClick={onSend} loading={sending} disabled={!ready}>
        Send answer
      </Button>
    </Group>
  );
}

/** A form begins with an empty object; another answer with nothing. */
function beginning(schema: Record<string, unknown>): unknown {
  return schema.type === "object" || isObject(schema.properties) || schema.$ref !== undefined
    ? {}
    : undefined;
}
