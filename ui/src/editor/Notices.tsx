import { Alert, Button, CopyButton, Group, Stack, Text } from "@mantine/core";
import type { ApprovalSnapshot } from "../api/approvals";
import type { ApiError } from "../api/client";
import { escapeInvisible } from "../components/escapeInvisible";
import type { SchemaProblem } from "./checkSchema";
import * as messages from "./messages";
import { draftText, type DraftState, type EditorDraft } from "./useEditorDraft";
import { splitPointer } from "./values";

/** Whether the draft can still be sent, or the approval was decided or edited by somebody else. */
type DraftStatus = "open" | "changed" | "over";

export function readDraftStatus(approval: ApprovalSnapshot, draft: EditorDraft): DraftStatus {
  if (approval.status !== "pending" || !approval.may_decide.includes("edit")) return "over";
  return draft.base === approval.args_sha256 ? "open" : "changed";
}

interface DraftNoticeProps {
  state: DraftStatus;
  approval: ApprovalSnapshot;
  drafting: DraftState;
}

/** Explains what changed while the user was editing; the draft is kept. */
export function DraftNotice({ state, approval, drafting }: DraftNoticeProps) {
  if (state === "open") return null;
  if (state === "changed")
    return (
      <Alert color="yellow" role="alert" tabIndex={-1} title={messages.argumentsHaveChanged}>
        <Stack gap="sm" align="start">
          <Text size="sm">{messages.theirEditCameFirst}</Text>
          <Group gap="sm">
            <Button size="xs" variant="default" onClick={() => drafting.rebase(approval.args_sha256)}>
              {messages.continueWithMyDraft}
            </Button>
            <Button
              size="xs"
              variant="default"
              onClick={() => drafting.discard(approval.args, approval.args_sha256)}
            >
              {messages.useTheirs}
            </Button>
          </Group>
        </Stack>
      </Alert>
    );
  return (
    <Alert color="yellow" role="alert" tabIndex={-1} title={endedTitle(approval)}>
      <Stack gap="sm" align="start">
        <Text size="sm">{messages.yourChangesWereNotSent}</Text>
        <CopyButton value={draftText(drafting.draft)}>
          {({ copied, copy }) => (
            <Button size="xs" variant="default" onClick={copy}>
              {copied ? messages.copied : messages.copyAsJson}
            </Button>
          )}
        </CopyButton>
      </Stack>
    </Alert>
  );
}

/** Server errors that belong to no field, or the number of invalid fields. */
export function RefusalNotice({
  refused,
  unplaced,
  problems,
}: {
  refused: ApiError | null;
  unplaced: SchemaProblem[];
  problems: SchemaProblem[];
}) {
  if (unplaced.length > 0)
    return (
      <Alert color="red" role="alert" tabIndex={-1} title={messages.thisCannotBeSentYet}>
        {unplaced.map(({ pointer, message }) => (
          <Text key={pointer + message} size="sm">
            {pathLabel(pointer)} {message}
            {message.endsWith(".") ? "" : "."}
          </Text>
        ))}
      </Alert>
    );
  if (!refused || refused.code === "findings_not_acknowledged" || refused.problems.length > 0) {
    const count = refused?.problems.length && problems.length;
    return count ? (
      <Text size="sm" role="alert" tabIndex={-1}>
        {messages.serverRefusedValues(count)}
      </Text>
    ) : null;
  }
  return (
    <Alert color="red" role="alert" tabIndex={-1} title={messages.thisWasNotSent}>
      <Text size="sm">{refused.message}</Text>
    </Alert>
  );
}

function pathLabel(pointer: string): string {
  return splitPointer(pointer).map(escapeInvisible).join(" › ") || messages.theArguments;
}

function endedTitle({ status, decision }: ApprovalSnapshot): string {
  if (status === "pending") return messages.youCanNoLongerEditThis;
  if (status === "expired") return messages.expiredWhileEditing;
  return decision
    ? messages.decidedWhileEditing(escapeInvisible(decision.by))
    : messages.endedWithStatus(status);
}
