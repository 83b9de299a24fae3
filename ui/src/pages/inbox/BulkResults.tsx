import { Button, Group, Text } from "@mantine/core";
import { useMemo, useState } from "react";
import type { ApprovalSnapshot } from "../../api/approvals";
import { useTick } from "../../components/TimeAgo";
import type { BulkAnswer, BulkResult } from "./BulkDecision";
import css from "./BulkDecision.module.css";
import * as messages from "./bulkMessages";
import { compareArguments } from "./Comparison";
import type { PendingUndo } from "./useDecisionFeedback";

interface Props {
  answer: BulkAnswer;
  results: readonly BulkResult[];
  calls: readonly ApprovalSnapshot[];
  onRetry: () => void;
  undo: PendingUndo;
}

/** The result per request; failed ones can be reviewed again, rejections can be undone. */
export function BulkResults({ answer, results, calls, onRetry, undo }: Props) {
  const [undone, setUndone] = useState<"" | "sending" | "sent">("");
  const { different, cells } = useMemo(() => compareArguments(calls), [calls]);
  const sentences = new Map(calls.map((call) => [call.id, call.card.sentence]));
  const listDifferences = (id: string) =>
    different.map(({ pointer, name }) => messages.fieldValue(name, cells.get(id)?.get(pointer)?.field.text));
  const failed = results.filter(({ ok }) => !ok).length;
  const succeeded = results.length - failed;
  useTick();
  const left = undo.left();
  const undoAll = async () => {
    setUndone("sending");
    await undo.last();
    setUndone("sent");
  };
  return (
    <>
      <Text role="status" fw={600}>
        {summary(answer, succeeded, failed)}
      </Text>
      <Group gap="sm">
        {failed > 0 && (
          <Button mih={44} onClick={onRetry}>
            {messages.reviewFailed(failed)}
          </Button>
        )}
        {answer.kind === "reject" && succeeded > 0 && undone !== "sent" && left > 0 && (
          <Button mih={44} variant="default" loading={undone === "sending"} onClick={() => void undoAll()}>
            {messages.undoRejections(succeeded, Math.ceil(left / 1_000))}
          </Button>
        )}
      </Group>
      <ul className={css.results}>
        {results.map((result) => (
          <li key={result.id} data-result={result.ok ? "done" : "failed"}>
            <Text size="sm">{sentences.get(result.id) ?? result.id}</Text>
            <Text size="sm" ff="monospace" lineClamp={2}>
              {listDifferences(result.id).join(", ")}
            </Text>
            <Text size="sm" fw={600} className={result.ok ? undefined : css.bad}>
              {result.ok ? statusLabel(result) : result.message}
            </Text>
          </li>
        ))}
      </ul>
    </>
  );
}

function summary({ kind }: BulkAnswer, succeeded: number, failed: number): string {
  const done = messages.resultCount(succeeded, kind);
  return failed ? messages.failedAreUnchanged(done, failed) : done;
}

function statusLabel({ status }: BulkResult): string {
  return status === "pending" ? messages.approvedMoreApprovalsAreNeeded : status;
}
