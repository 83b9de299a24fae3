import { Button } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import type { Ref } from "react";
import type { ApprovalSnapshot } from "../../api/approvals";
import { ApprovalCard, type CardHandle } from "../../card/ApprovalCard";
import { Loading } from "../../components/States";
import css from "./Inbox.module.css";

interface Props {
  id: string;
  card: Ref<CardHandle>;
  onMoved: (now: ApprovalSnapshot) => void;
  onBack: () => void;
}

const HELD = 150; // ms: whoever runs down the list with a key held down is shown where they stop

/** The card beside the list; on a phone it covers the list, and there is a way back. */
export default function CardPane({ id, card, onMoved, onBack }: Props) {
  const [shown] = useDebouncedValue(id, HELD, { leading: true });
  return (
    <>
      <Button className={css.back} variant="default" mih={44} onClick={onBack}>
        Back to the list
      </Button>
      {shown === id ? (
        <ApprovalCard key={id} ref={card} id={id} place="inbox" onMoved={onMoved} />
      ) : (
        <Loading what="Loading approval" />
      )}
    </>
  );
}
