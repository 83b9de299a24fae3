import { NativeSelect, Textarea, TextInput } from "@mantine/core";
import { callApi, fieldProblem, type Schemas } from "../../api/client";
import { mayDecide, useMe } from "../../api/currentUser";
import { EditForm } from "../../components/EditForm";
import { useSaveItem } from "../../components/mutations";
import { ErrorMessage, Loading } from "../../components/States";
import { useDraft } from "../../components/useDraft";
import css from "./Content.module.css";
import { ContentFacts, ItemFrame, visibilityHint } from "./ItemFrame";
import * as messages from "./messages";
import { usePost, type ContentStatus, type PostDetails } from "./queries";

export default function PostEditor({ id }: { id: string }) {
  const post = usePost(id);
  const mayEdit = mayDecide(useMe().data);
  if (post.isPending) return <Loading />;
  if (!post.data) return <ErrorMessage error={post.error} onRetry={() => void post.refetch()} />;
  const path = { slug: id };
  return (
    <ItemFrame
      kind="posts"
      title={post.data.title}
      history={post.data.history}
      consequence={messages.linksToItWillLeadNowhere}
      onDelete={() =>
        callApi("delete", "/api/content/posts/{slug}", { path, headers: { "if-match": post.data.etag } })
      }
    >
      <ContentFacts kind="posts" {...post.data} />
      {mayEdit ? <PostForm post={post.data} /> : <pre className={css.prose}>{post.data.body}</pre>}
    </ItemFrame>
  );
}

function PostForm({ post }: { post: PostDetails }) {
  const draft = useDraft(`post:${post.slug}`, toFields(post), post.etag);
  const save = useSaveItem(["content", "posts", "one", post.slug], (body: Schemas["PostBody"], headers) =>
    callApi("put", "/api/content/posts/{slug}", { path: { slug: post.slug }, body, headers }),
  );
  const { values } = draft;
  return (
    <EditForm
      label={messages.editPost}
      draft={draft}
      save={save}
      toFields={toFields}
      hint={visibilityHint(post.status, values.status)}
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
      <Textarea
        label={messages.text}
        description={messages.markdown}
        rows={14}
        value={values.body}
        onChange={(event) => draft.set({ body: event.currentTarget.value })}
        error={fieldProblem(save.error, "/body")}
      />
    </EditForm>
  );
}

export function StatusSelect({
  status,
  onChange,
}: {
  status: ContentStatus;
  onChange: (status: ContentStatus) => void;
}) {
  return (
    <NativeSelect
      label={messages.status}
      data={["draft", "published", "archived"]}
      value={status}
      onChange={(event) => onChange(event.currentTarget.value as ContentStatus)}
      maw={200}
    />
  );
}

const toFields = ({ title, status, body }: PostDetails): Schemas["PostBody"] => ({ title, status, body });
