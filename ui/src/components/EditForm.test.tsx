import { MantineProvider, TextInput } from "@mantine/core";
import { QueryClient, QueryClientProvider, useMutation } from "@tanstack/react-query";
import { act, cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { EditForm } from "./EditForm";
import { useDraft } from "./useDraft";

afterEach(cleanup);

interface Note {
  title: string;
  body: string;
}

interface StoredNote extends Note {
  etag: string;
}

interface SendingProps {
  note: StoredNote;
  send: (variables: { body: Note; etag: string }) => Promise<StoredNote>;
}

const toFields = ({ title, body }: StoredNote): Note => ({ title, body });

function NoteForm({ note, send }: SendingProps) {
  const draft = useDraft("note", toFields(note), note.etag);
  const save = useMutation({ mutationFn: send });
  return (
    <EditForm label="Edit note" draft={draft} save={save} toFields={toFields}>
      {(["title", "body"] as const).map((name) => (
        <TextInput
          key={name}
          label={name}
          value={draft.values[name]}
          onChange={(event) => draft.set({ [name]: event.currentTarget.value })}
        />
      ))}
    </EditForm>
  );
}

const field = (label: string) => screen.getByLabelText<HTMLInputElement>(label);
const type = (label: string, value: string) => fireEvent.change(field(label), { target: { value } });

it("keeps what is typed during a save, and saves it over the version that was just saved", async () => {
  const sent: unknown[] = [];
  let answer: (saved: StoredNote) => void = () => undefined;
  const send: SendingProps["send"] = (variables) => {
    sent.push(variables);
    return new Promise((resolve) => (answer = resolve));
  };
  const client = new QueryClient();
  client.setQueryData(["me"], { name: "ann", workspace: "default" });
  const page = (note: StoredNote) => (
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <NoteForm note={note} send={send} />
      </QueryClientProvider>
    </MantineProvider>
  );
  const { rerender } = render(page({ title: "One", body: "Text", etag: "1" }));
  type("title", " Two ");
  fireEvent.submit(screen.getByRole("form"));
  await waitFor(() => expect(sent).toHaveLength(1));
  type("body", "Text, and more");
  const saved = { title: "Two", body: "Text", etag: "2" };
  await act(async () => {
    answer(saved);
    await Promise.resolve();
  });
  rerender(page(saved));
  await waitFor(() => expect(field("title").value).toBe("Two"));
  expect(field("body").value).toBe("Text, and more");
  expect(screen.queryByRole("alert")).toBeNull();
  fireEvent.submit(screen.getByRole("form"));
  await waitFor(() => expect(sent).toHaveLength(2));
  expect(sent[1]).toEqual({ body: { title: "Two", body: "Text, and more" }, etag: "2" });
});
