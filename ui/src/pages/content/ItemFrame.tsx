import { Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useLocation } from "wouter";
import type { Schemas } from "../../api/client";
import { mayDecide, useMe } from "../../api/currentUser";
import { Confirm } from "../../components/Confirm";
import { ItemHistory } from "../../components/ItemHistory";
import { useSendMutation } from "../../components/mutations";
import { usePageTitle } from "../../components/PageTitle";
import { Section } from "../../components/Section";
import { TimeAgo } from "../../components/TimeAgo";
import css from "./Content.module.css";
import { CONTENT_KINDS, sitePath, type ContentKind } from "./contentKinds";
import { ContentStatusBadge } from "./ContentStatusBadge";
import * as messages from "./messages";
import type { ContentStatus } from "./queries";

interface ItemFrameProps {
  kind: ContentKind;
  title: string;
  history: Schemas["ItemChangeJson"][];
  /** What a deletion causes besides. */
  consequence?: string;
  onDelete: () => Promise<unknown>;
  children: ReactNode;
}

/** One item: its content, its history, and its deletion. */
export function ItemFrame({ kind, title, history, consequence, onDelete, children }: ItemFrameProps) {
  usePageTitle(title);
  const [, navigate] = useLocation();
  const mayEdit = mayDecide(useMe().data);
  const { one } = CONTENT_KINDS[kind];
  const remove = useSendMutation(
    (_: void) => onDelete(),
    [], // the item is gone; the list loads itself
    () => navigate(`/content/${kind}`),
  );
  return (
    <Stack gap="md" className={css.editor}>
      <Section title={title}>{children}</Section>
      <Section title={messages.history} about={messages.historyIsDeletedWith(one)}>
        <ItemHistory changes={history} />
      </Section>
      {mayEdit && (
        <Section title={messages.deleteThisItem(one)}>
          <Confirm
            label={messages.deleteItem(one)}
            consequence={messages.itemAndHistoryAreDeleted(one, consequence ?? "")}
            sending={remove.isPending}
            error={remove.error}
            onConfirm={() => remove.mutate()}
          />
        </Section>
      )}
    </Stack>
  );
}

interface FactsProps {
  kind: ContentKind;
  slug: string;
  status: ContentStatus;
  views: number;
  last_viewed_at: string | null;
  updated_at: string;
}

/** Status, address, views, and the time of the last change. */
export function ContentFacts({ kind, slug, status, views, last_viewed_at, updated_at }: FactsProps) {
  return (
    <div className={css.facts}>
      <ContentStatusBadge status={status} />
      <span className={css.slug}>{sitePath(kind, slug)}</span>
      <Text component="span" size="sm">
        {last_viewed_at ? (
          <>
            {messages.viewsUntil(views)} <TimeAgo at={last_viewed_at} />
          </>
        ) : (
          messages.noViewsRecorded
        )}
      </Text>
      <Text component="span" size="sm">
        {messages.updated} <TimeAgo at={updated_at} />
      </Text>
    </div>
  );
}

/** What saving does to visitors. */
export function visibilityHint(before: ContentStatus, after: ContentStatus): string {
  if (after === "published")
    return before === "published" ? messages.visitorsSeeChangeAtOnce : messages.savingPublishes;
  return before === "published" ? messages.savingUnpublishes : "";
}
