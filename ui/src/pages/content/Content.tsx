import { Anchor } from "@mantine/core";
import { lazy, Suspense } from "react";
import { Link, useLocation } from "wouter";
import NotFound from "../../components/NotFound";
import { Page } from "../../components/Page";
import { Loading } from "../../components/States";
import css from "./Content.module.css";
import { CONTENT_KINDS, isContentKind, type ContentKind } from "./contentKinds";
import { ContentList } from "./ContentList";
import * as messages from "./messages";

const EDITORS = {
  posts: lazy(() => import("./PostEditor")),
  pages: lazy(() => import("./PageEditor")),
  images: lazy(() => import("./ImageEditor")),
};

/** The content of the site: a list for each kind, or one item with its history. */
export default function Content() {
  useLocation(); // rerenders for another item
  const [kind = "posts", id = ""] = location.pathname.split("/").slice(2).map(decodeURIComponent); // the router decodes only a part of it
  if (!isContentKind(kind || "posts")) return <NotFound />;
  const known = (kind || "posts") as ContentKind;
  return id ? <Item key={`${known} ${id}`} kind={known} id={id} /> : <Lists kind={known} />;
}

function Lists({ kind }: { kind: ContentKind }) {
  return (
    <Page title={messages.content}>
      <nav aria-label={messages.content} className={css.tabs}>
        {Object.entries(CONTENT_KINDS).map(([each, { name }]) => (
          <Link
            key={each}
            href={`/content/${each}`}
            className={css.tab}
            aria-current={each === kind ? "page" : undefined}
          >
            {name}
          </Link>
        ))}
      </nav>
      <ContentList key={kind} kind={kind} />
    </Page>
  );
}

function Item({ kind, id }: { kind: ContentKind; id: string }) {
  const Editor = EDITORS[kind];
  return (
    <Page title={`${CONTENT_KINDS[kind].name.slice(0, -1)} ${id}`}>
      <Anchor component={Link} href={`/content/${kind}`} size="sm" w="fit-content">
        {messages.allItems(kind)}
      </Anchor>
      <Suspense fallback={<Loading />}>
        <Editor id={id} />
      </Suspense>
    </Page>
  );
}
