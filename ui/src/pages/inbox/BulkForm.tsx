import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import type { Read } from "../../api/approvals";
import css from "./Bulk.module.css";

export interface Wish {
  kind: "approve" | "reject";
  reason?: string;
}

interface Props {
  calls: readonly Read[];
  reading: boolean;
  sending: Wish["kind"] | "";
  onSend: (wish: Wish) => void;
}

const FEW = 5; // above that the number is typed
const LOOK = 600; // ms: what appeared or changed just now is not answered by accident

/** One answer for all that are shown; many are counted by whoever answers. */
export function BulkForm({ calls, reading, sending, onSend }: Props) {
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const isSettled = useSettled(calls.map(({ args_sha256 }) => args_sha256).join());
  const count = calls.length;
  const isCounted = count <= FEW || typed.trim() === String(count);
  const isReady = count > 0 && !reading && isSettled && isCounted && !sending;
  const all = (kind: Wish["kind"]) => calls.every(({ may_decide }) => may_decide.includes(kind));
  const button = (kind: Wish["kind"]) => ({
    loading: sending === kind,
    disabled: !isReady || !all(kind),
    title: all(kind) ? undefined : `Not all of these can be answered by ${kind}.`,
    onClick: () => onSend(reason.trim() ? { kind, reason: reason.trim() } : { kind }),
  });
  return (
    <Stack gap="sm" className={css.form}>
      <div className={css.fields}>
        <TextInput
          label="Reason (optional, the agent hears it)"
          maxLength={500}
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        {count > FEW && (
          <TextInput
            label={`Type ${count} to confirm all ${count}`}
            inputMode="numeric"
            autoComplete="off"
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
          />
        )}
      </div>
      <Group gap="sm">
        <Button mih={44} {...button("approve")}>
          Approve {count}
        </Button>
        <Button mih={44} variant="outline" color="red" {...button("reject")}>
          Reject {count}
        </Button>
      </Group>
      {count > 0 && !reading && !isCounted && <Text size="sm">Type the number first.</Text>}
    </Stack>
  );
}

function useSettled(what: string): boolean {
  const [settled, setSettled] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSettled(what), LOOK);
    return () => clearTimeout(timer);
  }, [what]);
  return settled === what;
}
