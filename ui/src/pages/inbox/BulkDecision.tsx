import { Alert, Button, Group, Progress, Stack, Text, TextInput, Title } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { approvalKey, readApproval, type ApprovalSnapshot } from "../../api/approvals";
import { callApi, type Schemas } from "../../api/client";
import { EmptyState, ErrorMessage } from "../../components/States";
import css from "./BulkDecision.module.css";
import * as messages from "./bulkMessages";
import { BulkResults } from "./BulkResults";
import { Comparison } from "./Comparison";
import type { FeedRow } from "./feed";
import type { PendingUndo } from "./useDecisionFeedback";
import { blockedReason } from "./useSelection";

export type BulkResult = Schemas["BulkDecisionResult"];

interface Props {
  ids: readonly string[];
  onClose: () => void;
  /** The result per request; failed ones stay selected. */
  onDone: (kind: BulkAnswer["kind"], results: BulkResult[]) => void;
  undo: PendingUndo;
}

/** A bulk decision on several calls of one tool: differences in columns, one result per call. */
export default function BulkDecision({ ids, onClose, onDone, undo }: Props) {
  const [done, setDone] = useState<{
    answer: BulkAnswer;
    results: BulkResult[];
    calls: ApprovalSnapshot[];
  } | null>(null);
  const [sending, setSending] = useState<BulkAnswer["kind"] | "">("");
  const [problem, setProblem] = useState<Error | null>(null);
  const { calls, excluded, missing } = useCalls(ids);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [done]); // where reading starts, also with a screen reader

  const send = async (answer: BulkAnswer) => {
    setSending(answer.kind);
    setProblem(null);
    try {
      const decisions = calls.map(({ id, args_sha256 }) => ({ id, args_sha256, ...answer }));
      const { results } = await callApi("post", "/api/approvals/bulk", {
        body: { decisions },
        idempotencyKey: crypto.randomUUID(),
      });
      setDone({ answer, results, calls });
      onDone(answer.kind, results);
    } catch (error) {
      setProblem(error as Error);
    }
    setSending("");
  };
  return (
    <section className={css.panel} aria-label={messages.bulkDecision}>
      <Group justify="space-between" wrap="nowrap" align="start">
        <Title order={2} size="h4" ref={heading} tabIndex={-1} className={css.heading}>
          {done ? messages.results : messages.decideApprovalsAtOnce(calls.length)}
        </Title>
        <Button variant="default" size="compact-md" mih={36} onClick={onClose}>
          {done ? messages.close : messages.back}
        </Button>
      </Group>
      {!done && ids.length === 0 && (
        <EmptyState title={messages.nothingSelected}>{messages.selectRequestsInListFirst}</EmptyState>
      )}
      {done ? (
        <BulkResults {...done} onRetry={() => setDone(null)} undo={undo} />
      ) : (
        <>
          <ToolLine calls={calls} />
          {missing > 0 && <LoadingProgress missing={missing} of={ids.length} />}
          <ExcludedList excluded={excluded} />
          <Comparison calls={calls} />
          {problem && <ErrorMessage error={problem} />}
          <BulkForm
            calls={calls}
            reading={missing > 0}
            sending={sending}
            onSend={(answer) => void send(answer)}
          />
        </>
      )}
    </section>
  );
}

/** Loads all calls and keeps them up to date; calls that no longer qualify are excluded with a reason. */
function useCalls(ids: readonly string[]) {
  const reads = useQueries({
    queries: ids.map((id) => ({
      queryKey: approvalKey(id),
      queryFn: ({ signal }: { signal: AbortSignal }) => readApproval(id, signal),
    })),
  });
  const loaded = reads.flatMap(({ data }) => (data ? [data] : []));
  const calls: ApprovalSnapshot[] = [];
  const excluded: { call: ApprovalSnapshot; why: string }[] = [];
  for (const call of loaded) {
    const why = blockedReason(call as unknown as FeedRow, calls as unknown as FeedRow[]);
    if (why) excluded.push({ call: call, why });
    else calls.push(call);
  }
  const failed = reads.filter(({ isError }) => isError).length;
  return { calls, excluded, missing: ids.length - loaded.length - failed };
}

function ToolLine({ calls }: { calls: readonly ApprovalSnapshot[] }) {
  const first = calls[0];
  if (!first) return null;
  return (
    <Text>
      {messages.allApprovalsCall}{" "}
      <Text span ff="monospace" fw={700}>
        {first.card.tool}
      </Text>
      .
    </Text>
  );
}

function LoadingProgress({ missing, of }: { missing: number; of: number }) {
  return (
    <div role="status">
      <Text size="sm">{messages.loadingProgressOf(of - missing, of)}</Text>
      <Progress value={((of - missing) / of) * 100} aria-label={messages.loadingProgress} />
    </div>
  );
}

function ExcludedList({ excluded }: { excluded: { call: ApprovalSnapshot; why: string }[] }) {
  if (!excluded.length) return null;
  return (
    <Alert color="yellow" title={messages.leftOutCount(excluded.length)} role="status">
      <ul className={css.left}>
        {excluded.map(({ call, why }) => (
          <li key={call.id}>
            {call.card.sentence} {why}
          </li>
        ))}
      </ul>
    </Alert>
  );
}

export interface BulkAnswer {
  kind: "approve" | "reject";
  reason?: string;
}

interface BulkFormProps {
  calls: readonly ApprovalSnapshot[];
  reading: boolean;
  sending: BulkAnswer["kind"] | "";
  onSend: (answer: BulkAnswer) => void;
}

const MAX_UNCONFIRMED = 5; // more have to be confirmed by typing their number
const SETTLE_TIME = 600; // ms in which new content cannot be decided by accident

/** One decision for all calls; many have to be confirmed by their number. */
function BulkForm({ calls, reading, sending, onSend }: BulkFormProps) {
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const isSettled = useSettled(calls.map(({ args_sha256 }) => args_sha256).join());
  const count = calls.length;
  const isCountConfirmed = count <= MAX_UNCONFIRMED || typed.trim() === String(count);
  const isReady = count > 0 && !reading && isSettled && isCountConfirmed && !sending;
  const allAllow = (kind: BulkAnswer["kind"]) => calls.every(({ may_decide }) => may_decide.includes(kind));
  const button = (kind: BulkAnswer["kind"]) => ({
    loading: sending === kind,
    disabled: !isReady || !allAllow(kind),
    title: allAllow(kind) ? undefined : messages.notAllAllow(kind),
    onClick: () => onSend(reason.trim() ? { kind, reason: reason.trim() } : { kind }),
  });
  return (
    <Stack gap="sm" className={css.form}>
      <div className={css.fields}>
        <TextInput
          label={messages.reasonOptionalSentToAgent}
          maxLength={500}
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        {count > MAX_UNCONFIRMED && (
          <TextInput
            label={messages.typeToConfirmAll(count)}
            inputMode="numeric"
            autoComplete="off"
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
          />
        )}
      </div>
      <Group gap="sm">
        <Button mih={44} {...button("approve")}>
          {messages.approveCount(count)}
        </Button>
        <Button mih={44} variant="outline" color="red" {...button("reject")}>
          {messages.rejectCount(count)}
        </Button>
      </Group>
      {count > 0 && !reading && !isCountConfirmed && <Text size="sm">{messages.typeNumberFirst}</Text>}
    </Stack>
  );
}

function useSettled(value: string): boolean {
  const [settled, setSettled] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLE_TIME);
    return () => clearTimeout(timer);
  }, [value]);
  return settled === value;
}
