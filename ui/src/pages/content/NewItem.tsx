import { Button, Group, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { callApi, fieldProblem } from "../../api/client";
import { useSendMutation } from "../../components/mutations";
import { ErrorMessage } from "../../components/States";
import { CONTENT_KINDS, sitePath, suggestSlug, type ContentKind } from "./contentKinds";

interface NewItemProps {
  kind: ContentKind;
  onCreated: (id: string) => void;
  onClose: () => void;
}

/** The form for a new item; a post or page begins as a draft. */
export function NewItem({ kind, onCreated, onClose }: NewItemProps) {
  const [values, setValues] = useState({ title: "", slug: "", name: "", alt: "", url: "" });
  const slug = values.slug || suggestSlug(values.title);
  const create = useSendMutation(
    (_: void, idempotencyKey) => createItem(kind, { ...values, slug }, idempotencyKey),
    ["content"],
    onCreated,
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
        {kind === "images" ? (
          <>
            <TextInput
              label="File name"
              description="Posts and pages show it as /images/NAME."
              placeholder="team.jpg"
              required
              {...field("name")}
            />
            <TextInput
              label="Description"
              description="What it shows, for people who cannot see it."
              required
              {...field("alt")}
            />
            <TextInput
              label="Address of the file"
              description="Optional, https only."
              type="url"
              {...field("url")}
            />
          </>
        ) : (
          <>
            <TextInput label="Title" required maxLength={300} {...field("title")} />
            <TextInput
              label="Address"
              description={`Lower-case letters, digits and hyphens: ${sitePath(kind, slug || "about-us")}`}
              required
              {...field("slug")}
              value={slug}
            />
          </>
        )}
        {create.error && <ErrorMessage error={create.error} />}
        <Group>
          <Button type="submit" loading={create.isPending}>
            Create {CONTENT_KINDS[kind].one}
          </Button>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

interface NewValues {
  title: string;
  slug: string;
  name: string;
  alt: string;
  url: string;
}

async function createItem(kind: ContentKind, values: NewValues, idempotencyKey: string): Promise<string> {
  const { title, slug, name, alt, url } = values;
  if (kind === "images")
    return (await callApi("post", "/api/content/images", { body: { name, alt, url }, idempotencyKey })).id;
  const body = { slug, title, status: "draft" as const };
  const made =
    kind === "posts"
      ? await callApi("post", "/api/content/posts", { body: { ...body, body: "" }, idempotencyKey })
      : await callApi("post", "/api/content/pages", { body: { ...body, sections: [] }, idempotencyKey });
  return made.slug;
}
