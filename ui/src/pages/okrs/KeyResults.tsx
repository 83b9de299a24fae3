import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { callApi, fieldProblem } from "../../api/client";
import { Confirm } from "../../components/Confirm";
import { EditForm } from "../../components/EditForm";
import { useSaveItem, useSendMutation } from "../../components/mutations";
import { ErrorMessage } from "../../components/States";
import { useDraftPlace, useHasDraft, useStoredTexts } from "../../components/storedDraft";
import { useDraft } from "../../components/useDraft";
import * as messages from "./messages";
import css from "./Okrs.module.css";
import { ProgressBar } from "./Progress";
import {
  describeProgress,
  NEW_KEY_RESULT,
  parseTypedNumber,
  readTyped,
  replaceKeyResult,
  toTyped,
  type KeyResultInfo,
  type ObjectiveDetails,
  type TypedKeyResult,
} from "./queries";

/** The key results of an objective: update progress, change, delete, add. */
export function KeyResults({ objective, mayEdit }: { objective: ObjectiveDetails; mayEdit: boolean }) {
  const [isAdding, setAdding] = useState(useHasDraft(newFormOf(objective.id)) && mayEdit);
  return (
    <>
      {objective.key_results.length === 0 && <Text size="sm">{messages.noKeyResultsYet}</Text>}
      <ul className={css.plain} aria-label={messages.keyResults}>
        {objective.key_results.map((result) => (
          <li key={result.id} className={css.item}>
            <KeyResult objectiveId={objective.id} result={result} mayEdit={mayEdit} />
          </li>
        ))}
      </ul>
      {isAdding && <NewKeyResult objectiveId={objective.id} onClose={() => setAdding(false)} />}
      {mayEdit && !isAdding && (
        <Button variant="default" w="fit-content" onClick={() => setAdding(true)}>
          {messages.newKeyResult}
        </Button>
      )}
    </>
  );
}

/** The names of the drafts. */
const formOf = ({ id }: KeyResultInfo) => `key result:${id}`;
const newFormOf = (objectiveId: string) => `new key result:${objectiveId}`;

interface KeyResultProps {
  objectiveId: string;
  result: KeyResultInfo;
}

function KeyResult({ objectiveId, result, mayEdit }: KeyResultProps & { mayEdit: boolean }) {
  const [isEditing, setEditing] = useState(useHasDraft(formOf(result)) && mayEdit);
  return (
    <Stack gap="xs">
      <div className={css.result}>
        <span>
          {result.title}: {describeProgress(result)}
        </span>
        <ProgressBar label={result.id} percent={result.percent} />
      </div>
      {mayEdit && !isEditing && (
        <Button
          size="xs"
          variant="default"
          w="fit-content"
          aria-label={messages.editKeyResult(result.id)}
          onClick={() => setEditing(true)}
        >
          {messages.edit}
        </Button>
      )}
      {isEditing && (
        <>
          <KeyResultForm objectiveId={objectiveId} result={result} onClose={() => setEditing(false)} />
          <DeleteKeyResult result={result} />
        </>
      )}
    </Stack>
  );
}

/** It closes once everything in it is saved. */
function KeyResultForm({ objectiveId, result, onClose }: KeyResultProps & { onClose: () => void }) {
  const draft = useDraft(formOf(result), toTyped(result), result.etag);
  const path = { key_result_id: result.id };
  const save = useSaveItem(
    ["okrs", "one", objectiveId],
    async (typed: TypedKeyResult, headers) =>
      callApi("put", "/api/key-results/{key_result_id}", { path, body: readTyped(typed), headers }),
    replaceKeyResult,
  );
  const isDone = save.isSuccess && !draft.isDirty;
  useEffect(() => {
    if (isDone) onClose();
  }, [isDone, onClose]);
  return (
    <EditForm
      label={messages.editKeyResult(result.id)}
      draft={draft}
      save={save}
      toFields={toTyped}
      onClose={onClose}
    >
      <KeyResultFields values={draft.values} error={save.error} onChange={draft.set} />
    </EditForm>
  );
}

function DeleteKeyResult({ result }: { result: KeyResultInfo }) {
  const remove = useSendMutation(
    (_: void) =>
      callApi("delete", "/api/key-results/{key_result_id}", {
        path: { key_result_id: result.id },
        headers: { "if-match": result.etag },
      }),
    ["okrs"],
  );
  return (
    <Confirm
      label={messages.deleteKeyResult}
      consequence={messages.keyResultIsDeleted(result.id)}
      sending={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
    />
  );
}

function NewKeyResult({ objectiveId, onClose }: { objectiveId: string; onClose: () => void }) {
  const [values, change] = useStoredTexts(useDraftPlace(newFormOf(objectiveId)), NEW_KEY_RESULT);
  const close = () => {
    change(NEW_KEY_RESULT);
    onClose();
  };
  const add = useSendMutation(
    async (typed: TypedKeyResult, idempotencyKey) =>
      callApi("post", "/api/objectives/{objective_id}/key-results", {
        path: { objective_id: objectiveId },
        body: readTyped(typed),
        idempotencyKey,
      }),
    ["okrs"],
    close,
  );
  return (
    <form
      aria-label={messages.newKeyResult}
      onSubmit={(event) => {
        event.preventDefault();
        add.mutate(values);
      }}
    >
      <Stack gap="sm">
        <KeyResultFields values={values} error={add.error} onChange={change} />
        {add.error && <ErrorMessage error={add.error} />}
        <Group>
          <Button type="submit" loading={add.isPending}>
            {messages.addKeyResult}
          </Button>
          <Button variant="default" onClick={close}>
            {messages.cancel}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

interface KeyResultFieldsProps {
  values: TypedKeyResult;
  error: Error | null;
  onChange: (changes: Partial<TypedKeyResult>) => void;
}

function KeyResultFields({ values, error, onChange }: KeyResultFieldsProps) {
  const field = (name: keyof TypedKeyResult) => ({
    value: values[name],
    onChange: (event: { currentTarget: { value: string } }) =>
      onChange({ [name]: event.currentTarget.value }),
    error: fieldProblem(error, `/${name}`),
  });
  const numberField = (name: "current" | "target") => {
    const isNumber = values[name] === "" || parseTypedNumber(values[name]) !== undefined;
    return {
      ...field(name),
      inputMode: "decimal" as const,
      ref: (input: HTMLInputElement | null) => input?.setCustomValidity(isNumber ? "" : messages.enterNumber),
      ...(!isNumber && { error: messages.enterNumber }),
    };
  };
  return (
    <>
      <TextInput label={messages.title} required maxLength={300} {...field("title")} />
      <div className={css.numbers}>
        <TextInput label={messages.current} required {...numberField("current")} />
        <TextInput label={messages.target} required {...numberField("target")} />
        <TextInput label={messages.unit} maxLength={30} placeholder="%" {...field("unit")} />
      </div>
    </>
  );
}
