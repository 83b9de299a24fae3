import { Button } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { isAdmin, mayDecide, useMe } from "../../api/currentUser";
import { Loading } from "../../components/States";
import { deletionLabel } from "./agentChange";
import * as messages from "./detailMessages";
import type { AgentInfo } from "./queries";

const DeleteAgent = lazy(() => import("./DeleteAgent"));
const TryAgent = lazy(() => import("./TryAgent"));

/** What can be done with an agent besides changing it. */
export function AgentActions({ agent }: { agent: AgentInfo }) {
  const me = useMe().data;
  const [, navigate] = useLocation();
  const [isDeleting, setDeleting] = useState(false);
  const trying = useTrying();
  if (agent.source === "calls") return null;
  return (
    <>
      {mayDecide(me) && (
        <Button variant="default" disabled={trying.isOpen} onClick={() => trying.setOpen(true)}>
          {messages.tryIt}
        </Button>
      )}
      {isAdmin(me) && (
        <Button variant="default" component={Link} href={`/agents?copy=${encodeURIComponent(agent.name)}`}>
          {messages.copy}
        </Button>
      )}
      {isAdmin(me) && agent.source === "stored" && (
        <Button variant="default" onClick={() => setDeleting(true)}>
          {deletionLabel(agent)}
        </Button>
      )}
      {isDeleting && (
        <Suspense>
          <DeleteAgent
            agent={agent}
            onDeleted={(remains) => (remains ? setDeleting(false) : navigate("/agents", { replace: true }))}
            onClose={() => setDeleting(false)}
          />
        </Suspense>
      )}
    </>
  );
}

/** The "Try it" box, if it is open. */
export function TryIt({ agent }: { agent: AgentInfo }) {
  const { isOpen, setOpen } = useTrying();
  const me = useMe().data;
  if (!isOpen || !mayDecide(me) || agent.source === "calls") return null;
  return (
    <Suspense fallback={<Loading label={messages.loadingConversation} />}>
      <TryAgent agent={agent} onClose={() => setOpen(false)} />
    </Suspense>
  );
}

/** Whether the box is open is in the URL. */
function useTrying() {
  const [params, setParams] = useSearchParams();
  const setOpen = (on: boolean) =>
    setParams((before) => {
      const after = new URLSearchParams(before);
      if (on) after.set("try", "new");
      else after.delete("try");
      return after;
    });
  return { isOpen: params.has("try"), setOpen };
}
