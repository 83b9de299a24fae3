import { Alert, Button, CopyButton, Group, Stack, Text } from "@mantine/core";
import type { ApprovalSnapshot } from "../api/approvals";
import type { ApiError } from "../api/client";
import { escapeInvisible } from "../components/escapeInvisible";
import type { SchemaProblem } from "./checkSchema";
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
      <Alert color="yellow" role="alert" tabIndex={-1} title="The arguments have changed">
        <Stack gap="sm" align="start">
          <Text size="sm">
            Somebody else edited them after you started. Your draft is kept and is now compared with the
            current arguments.
          </Text>
          <Group gap="sm">
            <Button size="xs" variant="default" onClick={() => drafting.rebase(approval.args_sha256)}>
              Continue with my draft
            </Button>
            <Button
              size="xs"
              variant="default"
              onClick={() => drafting.discard(approval.args, approval.args_sha256)}
            >
              Use theirs
            </Button>
          </Group>
        </Stack>
      </Alert>
    );
  return (
    <Alert color="yellow" role="alert" tabIndex={-1} title={endedTitle(approval)}>
      <Stack gap="sm" align="start">
        <Text size="sm">Your changes were not sent. You can still copy them.</Text>
        <CopyButton value={draftText(drafting.draft)}>
          {({ copied, copy }) => (
            <Button size="xs" variant="default" onClick={copy}>
              {copied ? "Copied" : "Copy as JSON"}
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
      <Alert color="red" role="alert" tabIndex={-1} title="This cannot be sent yet">
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
        The server refused this: {count === 1 ? "one value needs" : `${count} values need`} a correction.
        Nothing was decided.
      </Text>
    ) : null;
  }
  return (
    <Alert color="red" role="alert" tabIndex={-1} title="This was not sent">
      <Text size="sm">{refused.message}</Text>
    </Alert>
  );
}

function pathLabel(pointer: string): string {
  return splitPointer(pointer).map(escapeInvisible).join(" › ") || "The arguments";
}

function endedTitle({ status, decision }: ApprovalSnapshot): string {
  if (status === "pending") return "You can no longer edit this";
  if (status === "expired") return "This approval expired while you were editing";
  return decision
    ? `${escapeInvisible(decision.by)} decided this while you were editing`
    : `This approval is now ${status}`;
}
