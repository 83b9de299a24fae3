import { Button, Group, Radio, Stack, Tabs, Textarea } from "@mantine/core";
import { useCallback, useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from "react";
import type { ApprovalSnapshot } from "../api/approvals";
import type { ApiError } from "../api/client";
import { isSendKey, toKeyStroke } from "../card/keys";
import { escapeInvisible } from "../components/escapeInvisible";
import { FormView, TextView } from "./ArgumentsView";
import { checkSchema, toPlainWords, type SchemaProblem } from "./checkSchema";
import css from "./Editor.module.css";
import { FIRST_PROBLEM, useFocusFirst, useStableValue } from "./hooks";
import * as messages from "./messages";
import { RefusalNotice } from "./Notices";
import { useEditorDraft, useForgetSentDraft, type DraftState } from "./useEditorDraft";
import { hasField, planWithinLimits, useServerProblems } from "./useProblems";
import { isObject } from "./values";

const NO_SELECTORS: string[] = [];

interface AnswerFormProps {
  approval: ApprovalSnapshot;
  sending: boolean;
  refused: ApiError | null;
  onSend: (answer: { answer?: unknown; message?: string }) => void;
}

/** The answer to an agent's question: a choice, a form by its schema, or text. */
export default function AnswerForm({ approval, sending, refused, onSend }: AnswerFormProps) {
  const question = isObject(approval.args) ? approval.args : {};
  const schema = isObject(question.schema) ? question.schema : undefined;
  const choices = Array.isArray(question.choices) ? question.choices : undefined;
  const empty = useMemo(() => (schema ? emptyAnswer(schema) : ""), [schema]);
  const drafting = useEditorDraft(`${approval.id}:answer`, empty, approval.args_sha256);
  const { serverProblems, sent } = useServerProblems(refused, drafting.draft.value);
  useForgetSentDraft(`${approval.id}:answer`, refused, sent);
  const common = { drafting, sending };
  const send = (answer: { answer?: unknown; message?: string }) => {
    sent.current = drafting.draft.value;
    onSend(answer);
  };
  const onAnswer = (answer: unknown) => send({ answer });
  return (
    <div role="group" aria-label={messages.answer} onKeyDown={sendByKey}>
      {schema ? (
        <SchemaAnswer {...common} {...{ schema, refused, serverProblems, onAnswer }} />
      ) : choices ? (
        <ChoiceAnswer {...common} {...{ choices, onAnswer }} />
      ) : (
        <TextAnswer {...common} onMessage={(message) => send({ message })} />
      )}
    </div>
  );
}

/** Ctrl+Enter does what the button does, where it may be pressed. */
function sendByKey(event: KeyboardEvent<HTMLElement>): void {
  if (!isSendKey(toKeyStroke(event))) return;
  event.preventDefault();
  event.stopPropagation();
  event.currentTarget.querySelector<HTMLButtonElement>("[data-answer=respond]:enabled")?.click();
}

interface AnswerProps {
  drafting: DraftState;
  sending: boolean;
}

function ChoiceAnswer({
  drafting,
  sending,
  choices,
  onAnswer,
}: AnswerProps & { choices: unknown[]; onAnswer: (answer: unknown) => void }) {
  const { draft, setValue } = drafting;
  const picked = choices.findIndex((choice) => choice === draft.value);
  return (
    <Stack gap="sm" className={css.editor}>
      <Radio.Group
        label={messages.yourAnswer}
        value={String(picked)}
        onChange={(index) => setValue(choices[Number(index)])}
      >
        <Stack gap="xs" mt="xs">
          {choices.map((choice, index) => (
            <Radio
              key={index}
              className={css.target}
              value={String(index)}
              label={escapeInvisible(String(choice))}
            />
          ))}
        </Stack>
      </Radio.Group>
      <SendButton sending={sending} ready={picked >= 0} onSend={() => onAnswer(choices[picked])} />
    </Stack>
  );
}

function TextAnswer({
  drafting,
  sending,
  onMessage,
}: AnswerProps & { onMessage: (message: string) => void }) {
  const { draft, setValue } = drafting;
  const text = typeof draft.value === "string" ? draft.value : "";
  return (
    <Stack gap="sm" className={css.editor}>
      <Textarea
        label={messages.yourAnswer}
        autosize
        minRows={3}
        maxRows={16}
        value={text}
        onChange={({ currentTarget: { value } }) => setValue(value)}
      />
      <SendButton sending={sending} ready={text.trim() !== ""} onSend={() => onMessage(text)} />
    </Stack>
  );
}

interface SchemaAnswerProps extends AnswerProps {
  schema: Record<string, unknown>;
  refused: ApiError | null;
  serverProblems: SchemaProblem[];
  onAnswer: (answer: unknown) => void;
}

function SchemaAnswer({ drafting, sending, schema, refused, serverProblems, onAnswer }: SchemaAnswerProps) {
  const { draft } = drafting;
  const id = useId();
  const [isSubmitted, setSubmitted] = useState(false);
  const [tab, setTab] = useState<string | null>("form");
  const [typing, setTyping] = useState(false);
  const unread = useRef(false);
  useEffect(() => setTyping(unread.current), [draft]);
  const plan = useMemo(() => planWithinLimits(schema, [draft.value], []), [schema, draft.value]);
  const found = useMemo(() => checkSchema(schema, draft.value), [schema, draft.value]);
  const problems = useStableValue(isSubmitted ? [...found, ...serverProblems].map(toPlainWords) : []);
  const root = useRef<HTMLDivElement>(null);
  useFocusFirst(root, isSubmitted ? FIRST_PROBLEM : NO_SELECTORS, isSubmitted && refused);
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
          <Tabs.Tab value="form">{messages.form}</Tabs.Tab>
          <Tabs.Tab value="json">{messages.json}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="form">
          <FormView
            {...{ id, drafting, plan, problems, toJson }}
            before={emptyAnswer(schema)}
            marked={false}
          />
        </Tabs.Panel>
        <Tabs.Panel value="json">
          <TextView
            {...{ drafting, problems, unread }}
            label={messages.answerAsJson}
            onTyping={() => {
              unread.current = true;
              setTyping(true);
            }}
          />
        </Tabs.Panel>
      </Tabs>
      <SendButton
        sending={sending}
        ready={!draft.flaw && !typing && problems.length === 0 && draft.value !== undefined}
        onSend={() => {
          setSubmitted(true);
          if (found.length === 0) onAnswer(draft.value);
        }}
      />
    </Stack>
  );
}

function SendButton({ sending, ready, onSend }: { sending: boolean; ready: boolean; onSend: () => void }) {
  return (
    <Group className={css.foot}>
      <Button data-answer="respond" onClick={onSend} loading={sending} disabled={!ready}>
        {messages.sendAnswer}
      </Button>
      <span className={css.sendHint}>{messages.ctrlEnterSends}</span>
    </Group>
  );
}

/** An object schema starts with an empty object, any other without a value. */
function emptyAnswer(schema: Record<string, unknown>): unknown {
  return schema.type === "object" || isObject(schema.properties) || schema.$ref !== undefined
    ? {}
    : undefined;
}
