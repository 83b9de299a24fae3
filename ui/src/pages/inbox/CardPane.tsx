import { Button } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import type { Ref } from "react";
import { useApproval, type ApprovalAction, type ApprovalSnapshot } from "../../api/approvals";
import { ApprovalCard, type CardHandle } from "../../card/ApprovalCard";
import { Loading } from "../../components/States";
import { IconBack } from "../../components/icons";
import css from "./Inbox.module.css";
import * as messages from "./messages";

interface Props {
  id: string;
  /** The request that follows a decision: it is loaded ahead. */
  nextId: string;
  card: Ref<CardHandle>;
  onChanged: (now: ApprovalSnapshot, action: ApprovalAction) => void;
  onTooEarly: () => void;
  onBack: () => void;
}

const KEY_HOLD_DELAY = 150; // ms: while a key is held down, only the last row is opened

/** The card next to the list; on a phone it covers the list, with a back button. */
export default function CardPane({ id, nextId, card, onChanged, onTooEarly, onBack }: Props) {
  const [shown] = useDebouncedValue(id, KEY_HOLD_DELAY, { leading: true });
  return (
    <>
      <Button
        className={css.back}
        variant="subtle"
        mih={44}
        px="xs"
        leftSection={<IconBack size={16} stroke={1.75} aria-hidden />}
        onClick={onBack}
      >
        {messages.backToList}
      </Button>
      {shown === id ? (
        <>
          <ApprovalCard
            key={id}
            ref={card}
            id={id}
            location="inbox"
            onChanged={onChanged}
            onTooEarly={onTooEarly}
          />
          {nextId && <Preload key={nextId} id={nextId} />}
        </>
      ) : (
        <Loading label={messages.loadingRequest} />
      )}
    </>
  );
}

/** Keeps an approval loaded and up to date without showing it. */
function Preload({ id }: { id: string }) {
  useApproval(id);
  return null;
}
