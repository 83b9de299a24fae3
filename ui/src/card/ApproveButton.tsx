import { Button } from "@mantine/core";
import type { ApprovalSnapshot } from "../api/approvals";
import { HighRiskApproval } from "./HighRiskApproval";
import * as messages from "./messages";

export interface ApproveButtonProps {
  approval: { tool: string; card: Pick<ApprovalSnapshot["card"], "risk" | "tool"> };
  /** Instead of "Approve", where no hold is needed. */
  label?: string;
  /** What is approved, after "Approve": " with 2 changes". */
  what?: string;
  ready: boolean;
  /** The card did not appear or change just now. */
  settled: boolean;
  sending: boolean;
  onApprove: () => void;
  /** Pressed before the card had settled. */
  onTooEarly?: () => void;
}

/** The only control that lets a single call run, as it is, edited or confirmed: high risk takes more than a click. */
export function ApproveButton(props: ApproveButtonProps) {
  const {
    approval,
    what = "",
    label = messages.approveWithWhat(what),
    ready,
    settled,
    sending,
    onApprove,
    onTooEarly,
  } = props;
  if (approval.card.risk === "high") return <HighRiskApproval {...props} />;
  return (
    <Button
      data-answer="approve"
      data-key={what ? undefined : "A"}
      disabled={!ready && !sending}
      aria-disabled={!settled || undefined}
      loading={sending}
      onClick={() => ready && (settled ? onApprove() : onTooEarly?.())}
    >
      {label}
    </Button>
  );
}
