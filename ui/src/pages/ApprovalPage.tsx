import { Alert, Anchor } from "@mantine/core";
import { lazy, Suspense, useEffect, useState } from "react";
import { Link, useParams } from "wouter";
import { useMe } from "../api/currentUser";
import { useLinkPreview } from "../api/useLinkPreview";
import { ApprovalCard } from "../card/ApprovalCard";
import { Page } from "../components/Page";
import { Loading } from "../components/States";
import { readLinkToken, setLinkCounts } from "../live/approvalLink";
import css from "./ApprovalPage.module.css";

const DeliveryList = lazy(() => import("./DeliveryList"));

/** Where links from mail, Slack and pagers lead: the card, alone. */
export default function ApprovalPage() {
  const { id = "" } = useParams();
  const byLink = useCounts(id);
  const inbox = (
    <Anchor component={Link} href="/inbox" size="sm">
      Inbox
    </Anchor>
  );
  return (
    <div className={css.page} data-by-link={byLink || undefined}>
      <Page title="Approval" actions={inbox}>
        <ForWhom id={id} />
        <ApprovalCard id={id} place="page" />
        <Who id={id} />
      </Page>
    </div>
  );
}

/** Read when somebody wants to know. */
function Who({ id }: { id: string }) {
  const [open, setOpen] = useState(false);
  return (
    <details className={css.who} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Notifications</summary>
      {open && (
        <Suspense fallback={<Loading />}>
          <DeliveryList id={id} />
        </Suspense>
      )}
    </details>
  );
}

/** Whether what one decides here is decided through the link that one came by. */
function useCounts(id: string): boolean {
  const { data: me } = useMe();
  const { data: link } = useLinkPreview(readLinkToken(id));
  const counts = link?.person === me?.name && link?.workspace === me?.workspace && link?.spent === false;
  useEffect(() => setLinkCounts(counts), [counts]);
  return counts;
}

/** A link that was made for somebody else is said to be; what one decides is one's own all the same. */
function ForWhom({ id }: { id: string }) {
  const { data: me } = useMe();
  const { data: link } = useLinkPreview(readLinkToken(id));
  if (!link || !me || (link.person === me.name && link.workspace === me.workspace)) return null;
  const where = link.workspace === me.workspace ? "" : ` in the workspace ${link.workspace}`;
  return (
    <Alert color="yellow" title={`This link is for ${link.person}${where}`} role="note">
      You are signed in as {me.name}. A decision you make here is recorded as yours.
    </Alert>
  );
}
