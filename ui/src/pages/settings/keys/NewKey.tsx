import { Button, Group } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import type { Shapes } from "../../../api/client";
import { Dialog } from "../../../components/Dialog";
import { Loading } from "../../../components/States";

const KeyForm = lazy(() => import("./KeyForm"));

export interface WantedKey {
  name: string;
  role: string;
  user: string;
  /** Names of the agents that an agent's key is bound to; none: it may say any. */
  agents: string[];
  requester: string;
  expires_in: string;
}

export interface NewKeyProps {
  roles: string[];
  /** Whose a key for people may be; without any it is one's own. */
  people?: string[];
  onMake: (wanted: WantedKey, once: string) => Promise<Shapes["CreatedKey"]>;
}

export function NewKey(props: NewKeyProps) {
  const [opened, setOpened] = useState(false);
  return (
    <Group>
      <Button variant="default" onClick={() => setOpened(true)}>
        New key
      </Button>
      {opened && (
        <Dialog title="New key" onClose={() => setOpened(false)}>
          <Suspense fallback={<Loading />}>
            <KeyForm {...props} onDone={() => setOpened(false)} />
          </Suspense>
        </Dialog>
      )}
    </Group>
  );
}
