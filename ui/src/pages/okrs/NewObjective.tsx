import { Button, Group, Stack, Textarea, TextInput } from "@mantine/core";
import { callApi, fieldProblem } from "../../api/client";
import { useSendMutation } from "../../components/mutations";
import { ErrorMessage } from "../../components/States";
import { useDraftPlace, useStoredTexts } from "../../components/storedDraft";
import * as messages from "./messages";

const EMPTY = { title: "", description: "", quarter: "" };

/** The form for a new objective; without a quarter it is for the current one. */
export function NewObjective({
  onCreated,
  onClose,
}: {
  onCreated: (id: string) => void;
  onClose: () => void;
}) {
  const [values, change] = useStoredTexts(useDraftPlace("new objective"), EMPTY);
  const create = useSendMutation(
    (_: void, idempotencyKey) =>
      callApi("post", "/api/objectives", { body: { ...values, status: "on_track" }, idempotencyKey }),
    ["okrs"],
    ({ id }) => {
      change(EMPTY);
      onCreated(id);
    },
  );
  const field = (name: keyof typeof values) => ({
    value: values[name],
    onChange: (event: { currentTarget: { value: string } }) => change({ [name]: event.currentTarget.value }),
    error: fieldProblem(create.error, `/${name}`),
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate();
      }}
    >
      <Stack gap="sm">
        <TextInput label={messages.title} required maxLength={300} {...field("title")} />
        <Textarea label={messages.description} rows={3} maxLength={5000} {...field("description")} />
        <TextInput
          label={messages.quarter}
          description={messages.quarterHint}
          pattern="[0-9]{4}-Q[1-4]"
          {...field("quarter")}
        />
        {create.error && <ErrorMessage error={create.error} />}
        <Group>
          <Button type="submit" loading={create.isPending}>
            {messages.createObjective}
          </Button>
          <Button
            variant="default"
            onClick={() => {
              change(EMPTY);
              onClose();
            }}
          >
            {messages.cancel}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
