import { Button, Stack, Text } from "@mantine/core";
import { lazy, Suspense, useMemo, type RefObject } from "react";
import { Loading } from "../components/States";
import type { SchemaProblem } from "./checkSchema";
import type { FormPlan } from "./formPlan";
import { FormStateContext } from "./formState";
import * as messages from "./messages";
import { describeFlaw } from "./strictJson";
import { draftText, type DraftState } from "./useEditorDraft";

const ArgumentsForm = lazy(() => import("./ArgumentsForm"));
const JsonView = lazy(() => import("./JsonView"));

interface FormViewProps {
  id: string;
  drafting: DraftState;
  before: unknown;
  /** Whether changes against `before` are marked. */
  marked: boolean;
  /** Null if there is too much for a form. */
  plan: FormPlan | null;
  problems: SchemaProblem[];
  toJson: (pointer?: string) => void;
}

/** The draft as a form; with invalid JSON or too many values it refers to the JSON view. */
export function FormView({ id, drafting, before, marked, plan, problems, toJson }: FormViewProps) {
  const { draft, setValue, putAt } = drafting;
  const editing = useMemo(
    () => ({ before, marked, problems: groupByPointer(problems), put: putAt, toJson }),
    [before, marked, problems, putAt, toJson],
  );
  if (draft.flaw)
    return (
      <UseJsonNotice toJson={() => toJson()}>
        {messages.invalidJson(describeFlaw(draftText(draft), draft.flaw))}
      </UseJsonNotice>
    );
  if (!plan) return <UseJsonNotice toJson={() => toJson()}>{messages.tooManyValues}</UseJsonNotice>;
  return (
    <FormStateContext value={editing}>
      <Suspense fallback={<Loading label={messages.loadingForm} />}>
        <ArgumentsForm id={id} plan={plan} value={draft.value} onValue={setValue} />
      </Suspense>
    </FormStateContext>
  );
}

interface TextViewProps {
  drafting: DraftState;
  label: string;
  problems: SchemaProblem[];
  pointer?: string;
  unread: RefObject<boolean>;
  onTyping: () => void;
}

/** The draft as JSON, with its syntax error below. */
export function TextView({ drafting, label, problems, pointer, unread, onTyping }: TextViewProps) {
  const { draft, setText } = drafting;
  const text = draftText(draft);
  const applyText = (typed: string) => {
    unread.current = false;
    setText(typed);
  };
  return (
    <Stack gap="xs">
      <Suspense fallback={<Loading label={messages.loadingJsonEditor} />}>
        <JsonView {...{ text, label, problems, pointer, onTyping }} flaw={draft.flaw} onText={applyText} />
      </Suspense>
      {draft.flaw && (
        <Text size="sm" role="status" data-flaw>
          {describeFlaw(text, draft.flaw)}
        </Text>
      )}
    </Stack>
  );
}

function UseJsonNotice({ children, toJson }: { children: React.ReactNode; toJson: () => void }) {
  return (
    <Stack gap="xs" align="start">
      <Text size="sm">{children}</Text>
      <Button variant="default" onClick={toJson}>
        {messages.editAsJson}
      </Button>
    </Stack>
  );
}

function groupByPointer(problems: SchemaProblem[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { pointer, message } of problems)
    found.set(pointer, [...new Set([...(found.get(pointer) ?? []), message])]);
  return found;
}
