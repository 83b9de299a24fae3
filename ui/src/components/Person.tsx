import { Button } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import type { Myself } from "../api/me";

const PersonMenu = lazy(() => import("./PersonMenu"));

/** Who one is; the menu behind the name is loaded when somebody wants it. */
export function Person({ me }: { me: Myself }) {
  const [wanted, setWanted] = useState(false);
  const name = (
    <Button
      variant="subtle"
      size="sm"
      h={44}
      px="xs"
      c="inherit"
      aria-haspopup="menu"
      onClick={() => setWanted(true)}
    >
      {me.name}
    </Button>
  );
  return wanted ? (
    <Suspense fallback={name}>
      <PersonMenu me={me} />
    </Suspense>
  ) : (
    name
  );
}
