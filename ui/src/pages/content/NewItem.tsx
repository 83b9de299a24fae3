import { Button, Group, Stack, TextInput } from "@mantine/core";
import { callApi, fieldProblem } from "../../api/client";
import { useSendMutation } from "../../components/mutations";
import { ErrorMessage } from "../../components/States";
import { useDraftPlace, useStoredTexts } from "../../components/storedDraft";
import { CONTENT_KINDS, sitePath, suggestSlug, type ContentKind } from "./contentKinds";
import * as messages from "./messages";

interface NewItemProps {
  kind: ContentKind;
  onCreated: (id: string) => void;
  onClose: () => void;
}

const EMPTY: NewValues = { title: "", slug: "", name: "", alt: "", url: "" };

/** The form for a new item; a post or page begins as a draft. */
export function NewItem({ kind, onCreated, onClose }: NewItemProps) {
  const [values, change] = useStoredTexts(useDraftPlace(`new ${kind}`), EMPTY);
  const slug = values.slug || suggestSlug(values.title);
  const create = useSendMutation(
    (_: void, idempotencyKey) => createItem(kind, { ...values, slug }, idempotencyKey),
    ["content"],
    (id) => {
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
        {kind === "images" ? (
          <>
            <TextInput
              label={messages.fileName}
              description={messages.imagePathHint}
              placeholder={messages.teamJpg}
              required
              {...field("name")}
            />
            <TextInput
              label={messages.description}
              description={messages.altTextHint}
              required
              {...field("alt")}
            />
            <TextInput
              label={messages.addressOfFile}
              description={messages.optionalHttpsOnly}
              type="url"
              {...field("url")}
            />
          </>
        ) : (
          <>
            <TextInput label={messages.title} required maxLength={300} {...field("title")} />
            <TextInput
              label={messages.address}
              description={messages.addressHint(sitePath(kind, slug || "about-us"))}
              required
              {...field("slug")}
              value={slug}
            />
          </>
        )}
        {create.error && <ErrorMessage error={create.error} />}
        <Group>
          <Button type="submit" loading={create.isPending}>
            {messages.createItem(CONTENT_KINDS[kind].one)}
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
