import { Button } from "@mantine/core";
import { useMe } from "../api/me";
import { useTick } from "../components/Time";
import { undoLeft } from "./clock";
import type { Held } from "./held";

/** For a moment a rejection can be taken back; the agent has not heard of it yet. */
export function Undo({ held }: { held: Held }) {
  const me = useMe().data;
  const isMine = me?.role === "admin" || me?.name === held.now.decision?.by;
  const left = Math.ceil(undoLeft(held.now, useTick(held.now.status === "rejected")));
  if (!left || !isMine) return null;
  return (
    <Button
      variant="default"
      mt={8}
      mih={44}
      data-answer="undo"
      loading={held.sending === "undo"}
      onClick={() => held.move("undo")}
    >
      Undo ({left} s)
    </Button>
  );
}
