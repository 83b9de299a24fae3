import { Button } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { isAdmin, useMe } from "../../api/currentUser";
import { useFreezes } from "../../components/FreezeBanner";
import { IconFreeze } from "../../components/icons";
import { findFreeze } from "./activity";
import * as messages from "./detailMessages";

const FreezeDialog = lazy(() => import("./FreezeDialog"));

/** Stops an agent at once; the effect is said before. A frozen agent is released in the notice above every page. */
export function FreezeAgent({ agent, pending }: { agent: string; pending: number }) {
  const me = useMe().data;
  const freezes = useFreezes();
  const [isOpen, setOpen] = useState(false);
  if (!isAdmin(me) || !freezes.data || findFreeze(freezes.data.items, agent)) return null;
  return (
    <>
      <Button
        variant="default"
        leftSection={<IconFreeze size={16} aria-hidden="true" />}
        onClick={() => setOpen(true)}
      >
        {messages.freezeAgent}
      </Button>
      {isOpen && (
        <Suspense>
          <FreezeDialog agent={agent} pending={pending} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
