import { Text, TextInput } from "@mantine/core";
import { callApi, fieldProblem, type Schemas } from "../../api/client";
import { mayDecide, useMe } from "../../api/currentUser";
import { EditForm } from "../../components/EditForm";
import { useSaveItem } from "../../components/mutations";
import { ErrorMessage, Loading } from "../../components/States";
import { useDraft } from "../../components/useDraft";
import css from "./Content.module.css";
import { sitePath } from "./contentKinds";
import { ItemFrame } from "./ItemFrame";
import * as messages from "./messages";
import { useImage, type ImageDetails } from "./queries";

export default function ImageEditor({ id }: { id: string }) {
  const image = useImage(id);
  const mayEdit = mayDecide(useMe().data);
  if (image.isPending) return <Loading />;
  if (!image.data) return <ErrorMessage error={image.error} onRetry={() => void image.refetch()} />;
  const { name, used_in, alt, etag, history } = image.data;
  return (
    <ItemFrame
      kind="images"
      title={name}
      history={history}
      consequence={used_in.length ? messages.itWillBeMissingIn(used_in.join(", ")) : messages.itIsUsedNowhere}
      onDelete={() =>
        callApi("delete", "/api/content/images/{image_id}", {
          path: { image_id: id },
          headers: { "if-match": etag },
        })
      }
    >
      <div className={css.facts}>
        <span className={css.slug}>{sitePath("images", name)}</span>
        <Text component="span" size="sm">
          {used_in.length ? messages.usedInPages(used_in.join(", ")) : messages.usedNowhere}
        </Text>
      </div>
      {mayEdit ? <ImageForm image={image.data} /> : <Text size="sm">{alt}</Text>}
    </ItemFrame>
  );
}

function ImageForm({ image }: { image: ImageDetails }) {
  const draft = useDraft(`image:${image.id}`, toFields(image), image.etag);
  const save = useSaveItem(["content", "images", "one", image.id], (body: Schemas["ImageBody"], headers) =>
    callApi("put", "/api/content/images/{image_id}", { path: { image_id: image.id }, body, headers }),
  );
  return (
    <EditForm label={messages.editImage} draft={draft} save={save} toFields={toFields}>
      <TextInput
        label={messages.description}
        description={messages.altTextHint}
        maxLength={1000}
        value={draft.values.alt}
        onChange={(event) => draft.set({ alt: event.currentTarget.value })}
      />
      <TextInput
        label={messages.addressOfFile}
        description={messages.imageUrlHint}
        type="url"
        value={draft.values.url}
        onChange={(event) => draft.set({ url: event.currentTarget.value })}
        error={fieldProblem(save.error, "/url")}
      />
    </EditForm>
  );
}

const toFields = ({ alt, url }: ImageDetails): Schemas["ImageBody"] => ({ alt, url });
