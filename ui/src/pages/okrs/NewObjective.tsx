import { Button, Group, Stack, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { callApi, fieldProblem } from "../../api/client";
import { useSendMutation } from "../../components/mutations";
import { ErrorMessage } from "../../components/States";

/** The form for a new objective; without a quarter it is for the current one. */
export function NewObjective({
  onCreated,
  onClose,
}: {
  onCreated: (id: string) => void;
  onClose: () => void;
}) {
  const [values, setValues] = useState({ title: "", description: "", quarter: "" });
  const create = useSendMutation(
    (_: void, idempotencyKey) =>
      callApi("post", "/api/objectives", { body: { ...values, status: "on_track" }, idempotencyKey }),
    ["okrs"],
    ({ id }) => onCreated(id),
  );
  const field = (name: keyof typeof values) => ({
    value: values[name],
    onChange: (event: { currentTarget: { value: string } }) =>
      setValues({ ...values, [name]: event.currentTarget.value }),
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
        <TextInput label="Title" required maxLength={300} {...field("title")} />
        <Textarea label="Description" rows={3} maxLength={5000} {...field("description")} />
        <TextInput
          label="Quarter"
          description="Such as 2027-Q1; empty for the current quarter"
          pattern="[0-9]{4}-Q[1-4]"
          {...field("quarter")}
        />
        {create.error && <ErrorMessage error={create.error} />}
        <Group>
          <Button type="submit" loading={create.isPending}>
            Create objective
          </Button>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
