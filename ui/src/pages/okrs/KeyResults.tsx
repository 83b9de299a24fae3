import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { callApi, fieldProblem, type Schemas } from "../../api/client";
import { Confirm } from "../../components/Confirm";
import { useSendMutation } from "../../components/mutations";
import { ErrorMessage } from "../../components/States";
import css from "./Okrs.module.css";
import { ProgressBar } from "./Progress";
import { describeProgress, parseTypedNumber, type KeyResultInfo, type ObjectiveDetails } from "./queries";

/** The key results of an objective: update progress, change, delete, add. */
export function KeyResults({ objective, mayEdit }: { objective: ObjectiveDetails; mayEdit: boolean }) {
  const [isAdding, setAdding] = useState(false);
  const add = useSendMutation(
    (body: Schemas["KeyResultBody"], idempotencyKey) =>
      callApi("post", "/api/objectives/{objective_id}/key-results", {
        path: { objective_id: objective.id },
        body,
        idempotencyKey,
      }),
    ["okrs"],
    () => setAdding(false),
  );
  return (
    <>
      {objective.key_results.length === 0 && <Text size="sm">No key results yet.</Text>}
      <ul className={css.plain} aria-label="Key results">
        {objective.key_results.map((result) => (
          <li key={result.id} className={css.item}>
            <KeyResult result={result} mayEdit={mayEdit} />
          </li>
        ))}
      </ul>
      {isAdding && (
        <KeyResultForm
          label="New key result"
          button="Add key result"
          saving={add.isPending}
          error={add.error}
          onSave={(body) => add.mutate(body)}
          onClose={() => setAdding(false)}
        />
      )}
      {mayEdit && !isAdding && (
        <Button variant="default" w="fit-content" onClick={() => setAdding(true)}>
          New key result
        </Button>
      )}
    </>
  );
}

function KeyResult({ result, mayEdit }: { result: KeyResultInfo; mayEdit: boolean }) {
  const [isEditing, setEditing] = useState(false);
  const path = { key_result_id: result.id };
  const headers = { "if-match": result.etag };
  const save = useSendMutation(
    (body: Schemas["KeyResultBody"]) =>
      callApi("put", "/api/key-results/{key_result_id}", { path, body, headers }),
    ["okrs"],
    () => setEditing(false),
  );
  const remove = useSendMutation(
    (_: void) => callApi("delete", "/api/key-results/{key_result_id}", { path, headers }),
    ["okrs"],
  );
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
          aria-label={`Edit ${result.id}`}
          onClick={() => setEditing(true)}
        >
          Edit
        </Button>
      )}
      {isEditing && (
        <>
          <KeyResultForm
            label={`Edit ${result.id}`}
            button="Save changes"
            result={result}
            saving={save.isPending}
            error={save.error}
            onSave={(body) => save.mutate(body)}
            onClose={() => setEditing(false)}
          />
          <Confirm
            label="Delete key result"
            consequence={`${result.id} and its history are deleted for ever.`}
            sending={remove.isPending}
            error={remove.error}
            onConfirm={() => remove.mutate()}
          />
        </>
      )}
    </Stack>
  );
}

interface KeyResultFormProps {
  label: string;
  button: string;
  result?: KeyResultInfo;
  saving: boolean;
  error: Error | null;
  onSave: (body: Schemas["KeyResultBody"]) => void;
  onClose: () => void;
}

function KeyResultForm({ label, button, result, saving, error, onSave, onClose }: KeyResultFormProps) {
  const [values, setValues] = useState({
    title: result?.title ?? "",
    current: String(result?.current ?? 0),
    target: result ? String(result.target) : "",
    unit: result?.unit ?? "",
  });
  const current = parseTypedNumber(values.current);
  const target = parseTypedNumber(values.target);
  const field = (name: keyof typeof values) => ({
    value: values[name],
    onChange: (event: { currentTarget: { value: string } }) =>
      setValues({ ...values, [name]: event.currentTarget.value }),
    error: fieldProblem(error, `/${name}`),
  });
  return (
    <form
      aria-label={label}
      onSubmit={(event) => {
        event.preventDefault();
        if (current !== undefined && target !== undefined)
          onSave({ title: values.title, current, target, unit: values.unit.trim() });
      }}
    >
      <Stack gap="sm">
        <TextInput label="Title" required maxLength={300} {...field("title")} />
        <div className={css.numbers}>
          <TextInput
            label="Current"
            required
            inputMode="decimal"
            {...field("current")}
            error={current === undefined && "A number"}
          />
          <TextInput
            label="Target"
            required
            inputMode="decimal"
            {...field("target")}
            error={values.target !== "" && target === undefined && "A number"}
          />
          <TextInput label="Unit" maxLength={30} placeholder="%" {...field("unit")} />
        </div>
        {error && <ErrorMessage error={error} />}
        <Group>
          <Button type="submit" loading={saving}>
            {button}
          </Button>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
