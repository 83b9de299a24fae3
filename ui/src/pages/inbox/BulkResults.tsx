import { Button, Group, Text } from "@mantine/core";
import { useMemo, useState } from "react";
import type { ApprovalSnapshot } from "../../api/approvals";
import { useTick } from "../../components/TimeAgo";
import type { BulkAnswer, BulkResult } from "./BulkDecision";
import css from "./BulkDecision.module.css";
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
    different.map(({ pointer, name }) => `${name}: ${cells.get(id)?.get(pointer)?.field.text ?? "not set"}`);
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
            {failed === 1 ? "Review the failed approval" : `Review the ${failed} failed approvals`}
          </Button>
        )}
        {answer.kind === "reject" && succeeded > 0 && undone !== "sent" && left > 0 && (
          <Button mih={44} variant="default" loading={undone === "sending"} onClick={() => void undoAll()}>
            Undo {succeeded === 1 ? "the rejection" : `all ${succeeded} rejections`} (
            {Math.ceil(left / 1_000)} s)
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
  const done = `${succeeded} ${kind === "approve" ? "approved" : "rejected"}.`;
  return failed ? `${done} ${failed} failed and ${failed === 1 ? "is" : "are"} unchanged.` : done;
}

function statusLabel({ status }: BulkResult): string {
  return status === "pending" ? "Approved. More approvals are needed." : status;
}
