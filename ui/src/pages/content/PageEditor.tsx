import { Button, Group, Stack, Text, Textarea, TextInput, Title } from "@mantine/core";
import { callApi, fieldProblem, type Schemas } from "../../api/client";
import { mayDecide, useMe } from "../../api/currentUser";
import { EditForm } from "../../components/EditForm";
import { useSaveItem } from "../../components/mutations";
import { ErrorMessage, Loading } from "../../components/States";
import { useDraft } from "../../components/useDraft";
import css from "./Content.module.css";
import { freeSectionId, moveEntry } from "./contentKinds";
import { ContentFacts, ItemFrame, visibilityHint } from "./ItemFrame";
import * as messages from "./messages";
import { StatusSelect } from "./PostEditor";
import { usePage, type PageDetails, type SectionInfo } from "./queries";

const MAX_SECTIONS = 50;

export default function PageEditor({ id }: { id: string }) {
  const page = usePage(id);
  const mayEdit = mayDecide(useMe().data);
  if (page.isPending) return <Loading />;
  if (!page.data) return <ErrorMessage error={page.error} onRetry={() => void page.refetch()} />;
  const path = { slug: id };
  return (
    <ItemFrame
      kind="pages"
      title={page.data.title}
      history={page.data.history}
      consequence={messages.linksToItWillLeadNowhere}
      onDelete={() =>
        callApi("delete", "/api/content/pages/{slug}", { path, headers: { "if-match": page.data.etag } })
      }
    >
      <ContentFacts kind="pages" {...page.data} />
      {mayEdit ? <PageForm page={page.data} /> : <SectionTexts sections={page.data.sections} />}
    </ItemFrame>
  );
}

function SectionTexts({ sections }: { sections: SectionInfo[] }) {
  return sections.map((section) => (
    <div key={section.id}>
      <Title order={3} size="h5">
        {section.heading}
      </Title>
      <pre className={css.prose}>{section.body}</pre>
    </div>
  ));
}

function PageForm({ page }: { page: PageDetails }) {
  const draft = useDraft(`page:${page.slug}`, toFields(page), page.etag);
  const save = useSaveItem(["content", "pages", "one", page.slug], (body: Schemas["PageBody"], headers) =>
    callApi("put", "/api/content/pages/{slug}", { path: { slug: page.slug }, body, headers }),
  );
  const { values } = draft;
  return (
    <EditForm
      label={messages.editPage}
      draft={draft}
      save={save}
      toFields={toFields}
      hint={visibilityHint(page.status, values.status)}
    >
      <TextInput
        label={messages.title}
        required
        maxLength={300}
        value={values.title}
        onChange={(event) => draft.set({ title: event.currentTarget.value })}
        error={fieldProblem(save.error, "/title")}
      />
      <StatusSelect status={values.status} onChange={(status) => draft.set({ status })} />
      <SectionFields
        sections={values.sections}
        stored={page.sections.map(({ id }) => id)}
        onChange={(sections) => draft.set({ sections })}
      />
    </EditForm>
  );
}

interface SectionFieldsProps {
  sections: SectionInfo[];
  /** The ids of the sections that are stored; links lead to them, so they stay. */
  stored: string[];
  onChange: (sections: SectionInfo[]) => void;
}

/** The sections in their order: change, move, remove, add. */
function SectionFields({ sections, stored, onChange }: SectionFieldsProps) {
  const change = (place: number, changes: Partial<SectionInfo>) =>
    onChange(sections.map((section, other) => (other === place ? { ...section, ...changes } : section)));
  const isStored = (place: number) => {
    const { id } = sections[place] ?? { id: "" };
    return stored.includes(id) && sections.findIndex((section) => section.id === id) === place;
  };
  return (
    <Stack gap="sm">
      {sections.length === 0 && <Text size="sm">{messages.thisPageHasNoSectionsYet}</Text>}
      {sections.map((section, place) => (
        <fieldset key={place} className={css.section}>
          <legend>{messages.sectionNumber(place + 1)}</legend>
          <Stack gap="xs">
            <div className={css.heading}>
              <TextInput
                label={messages.heading}
                required
                maxLength={300}
                value={section.heading}
                onChange={(event) => change(place, { heading: event.currentTarget.value })}
              />
              <TextInput
                label={messages.id}
                title={messages.idHint}
                required
                pattern="[a-z0-9]+(-[a-z0-9]+)*"
                value={section.id}
                readOnly={isStored(place)}
                onChange={(event) => change(place, { id: event.currentTarget.value })}
              />
            </div>
            <Textarea
              label={messages.text}
              rows={4}
              value={section.body}
              onChange={(event) => change(place, { body: event.currentTarget.value })}
            />
            <SectionButtons sections={sections} place={place} onChange={onChange} />
          </Stack>
        </fieldset>
      ))}
      <Button
        variant="default"
        w="fit-content"
        disabled={sections.length >= MAX_SECTIONS}
        onClick={() =>
          onChange([...sections, { id: freeSectionId(sections.map(({ id }) => id)), heading: "", body: "" }])
        }
      >
        {messages.addSection}
      </Button>
    </Stack>
  );
}

function SectionButtons({
  sections,
  place,
  onChange,
}: {
  sections: SectionInfo[];
  place: number;
  onChange: (sections: SectionInfo[]) => void;
}) {
  const name = messages.sectionInSentence(place + 1);
  return (
    <Group gap="xs">
      <Button
        size="xs"
        variant="default"
        aria-label={messages.moveUpNamed(name)}
        disabled={place === 0}
        onClick={() => onChange(moveEntry(sections, place, -1))}
      >
        {messages.moveUp}
      </Button>
      <Button
        size="xs"
        variant="default"
        aria-label={messages.moveDownNamed(name)}
        disabled={place === sections.length - 1}
        onClick={() => onChange(moveEntry(sections, place, 1))}
      >
        {messages.moveDown}
      </Button>
      <Button
        size="xs"
        variant="default"
        aria-label={messages.removeNamed(name)}
        onClick={() => onChange(sections.filter((_, other) => other !== place))}
      >
        {messages.remove}
      </Button>
    </Group>
  );
}

const toFields = ({ title, status, sections }: PageDetails): Schemas["PageBody"] => ({
  title,
  status,
  sections,
});
