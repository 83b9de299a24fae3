import { Alert, Anchor } from "@mantine/core";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { Link, useParams } from "wouter";
import { useApproval } from "../api/approvals";
import { useMe } from "../api/currentUser";
import { useLinkPreview } from "../api/useLinkPreview";
import { ApprovalCard } from "../card/ApprovalCard";
import { Page } from "../components/Page";
import { usePageTitle } from "../components/PageTitle";
import { Loading } from "../components/States";
import { useFocusKeeper } from "../components/useFocusKeeper";
import { readLinkToken, setLinkCounts } from "../live/approvalLink";
import css from "./ApprovalPage.module.css";
import * as messages from "./messages";

const DeliveryList = lazy(() => import("./DeliveryList"));

/** The target of links in notifications: the card alone. */
export default function ApprovalPage() {
  const { id = "" } = useParams();
  const root = useRef<HTMLDivElement>(null);
  const byLink = useLinkIsMine(id);
  usePageTitle(useApproval(id).data?.card.sentence ?? "");
  useFocusKeeper(root, () =>
    root.current?.querySelector<HTMLElement>("article")?.focus({ preventScroll: true }),
  );
  const inbox = (
    <Anchor component={Link} href="/inbox" size="sm">
      {messages.inbox}
    </Anchor>
  );
  return (
    <div ref={root} className={`${css.page} ${css.roomy}`} data-by-link={byLink || undefined}>
      <Page title={messages.approval} actions={inbox}>
        <LinkOwnerNotice id={id} />
        <ApprovalCard id={id} location="page" />
        <NotificationsSection id={id} />
      </Page>
    </div>
  );
}

/** Loaded when it is opened. */
function NotificationsSection({ id }: { id: string }) {
  const [open, setOpen] = useState(false);
  return (
    <details className={css.who} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{messages.notifications}</summary>
      {open && (
        <Suspense fallback={<Loading />}>
          <DeliveryList id={id} />
        </Suspense>
      )}
    </details>
  );
}

/** Whether a decision on this page uses the link that opened it. */
function useLinkIsMine(id: string): boolean {
  const { data: me } = useMe();
  const { data: link } = useLinkPreview(readLinkToken(id));
  const isMine = link?.person === me?.name && link?.workspace === me?.workspace && link?.spent === false;
  useEffect(() => setLinkCounts(isMine), [isMine]);
  return isMine;
}

/** A notice for a link that was made for another user; decisions still count as the signed-in user's. */
function LinkOwnerNotice({ id }: { id: string }) {
  const { data: me } = useMe();
  const { data: link } = useLinkPreview(readLinkToken(id));
  if (!link || !me || (link.person === me.name && link.workspace === me.workspace)) return null;
  const workspaceSuffix = link.workspace === me.workspace ? "" : messages.inWorkspaceSuffix(link.workspace);
  return (
    <Alert color="yellow" title={messages.thisLinkIsFor(link.person, workspaceSuffix)} role="note">
      {messages.youAreSignedInAs(me.name)}
    </Alert>
  );
}
