import { Button, Stack, Text } from "@mantine/core";
import { lazy, Suspense, useMemo, type RefObject } from "react";
import { Loading } from "../components/States";
import type { SchemaProblem } from "./checkSchema";
import type { FormPlan } from "./formPlan";
import { FormStateContext } from "./formState";
import { describeFlaw } from "./strictJson";
import { draftText, type DraftState } from "./useEditorDraft";

const ArgumentsForm = lazy(() => import("./ArgumentsForm"));
const JsonView = lazy(() => import("./JsonView"));

interface FormViewProps {
  id: string;
  drafting: DraftState;
  before: unknown;
  /** Whether what differs from before is marked. */
  marked: boolean;
  /** Null where there is too much for a form. */
  plan: FormPlan | null;
  problems: SchemaProblem[];
  toJson: (pointer?: string) => void;
}

/** The draft as a form; while its JSON does not read, or is too much, it says so and leads there. */
export function FormView({ id, drafting, before, marked, plan, problems, toJson }: FormViewProps) {
  const { draft, setValue, putAt } = drafting;
  const editing = useMemo(
    () => ({ before, marked, problems: byPlace(problems), put: putAt, toJson }),
    [before, marked, problems, putAt, toJson],
  );
  if (draft.flaw)
    return (
      <Elsewhere toJson={() => toJson()}>
        The JSON is invalid: {describeFlaw(draftText(draft), draft.flaw)} Fix it to use the form. Your text is
        kept.
      </Elsewhere>
    );
  if (!plan)
    return (
      <Elsewhere toJson={() => toJson()}>
        There are too many values for a form, or values that are too long.
      </Elsewhere>
    );
  return (
    <FormStateContext value={editing}>
      <Suspense fallback={<Loading what="Loading form" />}>
        <ArgumentsForm id={id} plan={plan} value={draft.value} onValue={setValue} />
      </Suspense>
    </FormStateContext>
  );
}

interface TextViewProps {
  drafting: DraftState;
  label: string;
  problems: SchemaProblem[];
  place?: string;
  unread: RefObject<boolean>;
  onTyping: () => void;
}

/** The draft as JSON, with what is wrong in words below. */
export function TextView({ drafting, label, problems, place, unread, onTyping }: TextViewProps) {
  const { draft, setText } = drafting;
  const text = draftText(draft);
  const take = (typed: string) => {
    unread.current = false;
    setText(typed);
  };
  return (
    <Stack gap="xs">
      <Suspense fallback={<Loading what="Loading JSON editor" />}>
        <JsonView {...{ text, label, problems, place, onTyping }} flaw={draft.flaw} onText={take} />
      </Suspense>
      {draft.flaw && (
        <Text size="sm" role="status" data-flaw>
          {describeFlaw(text, draft.flaw)}
        </Text>
      )}
    </Stack>
  );
}

function Elsewhere({ children, toJson }: { children: React.ReactNode; toJson: () => void }) {
  return (
    <Stack gap="xs" align="start">
      <Text size="sm">{children}</Text>
      <Button variant="default" onClick={toJson}>
        Edit as JSON
      </Button>
    </Stack>
  );
}

function byPlace(problems: SchemaProblem[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { pointer, message } of problems)
    found.set(pointer, [...new Set([...(found.get(pointer) ?? []), message])]);
  return found;
}
