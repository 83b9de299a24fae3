import { Alert, Button, Group, Progress, Stack, Text, TextInput, Title } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { approvalKey, readApproval, type ApprovalSnapshot } from "../../api/approvals";
import { callApi, type Schemas } from "../../api/client";
import { EmptyState, ErrorMessage } from "../../components/States";
import css from "./BulkDecision.module.css";
import { BulkResults } from "./BulkResults";
import { Comparison } from "./Comparison";
import type { FeedRow } from "./feed";
import type { PendingUndo } from "./useDecisionFeedback";
import { blockedReason } from "./useSelection";

export type BulkResult = Schemas["BulkDecisionResult"];

interface Props {
  ids: readonly string[];
  onClose: () => void;
  /** How each ended; those that failed are still selected. */
  onDone: (kind: BulkAnswer["kind"], results: BulkResult[]) => void;
  undo: PendingUndo;
}

/** Several calls of one tool, decided together: what differs is in columns, and each is answered by itself. */
export default function BulkDecision({ ids, onClose, onDone, undo }: Props) {
  const [done, setDone] = useState<{
    wish: BulkAnswer;
    results: BulkResult[];
    calls: ApprovalSnapshot[];
  } | null>(null);
  const [sending, setSending] = useState<BulkAnswer["kind"] | "">("");
  const [problem, setProblem] = useState<Error | null>(null);
  const { calls, left, missing } = useCalls(ids);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [done]); // where one begins to read, also for whoever hears it

  const send = async (wish: BulkAnswer) => {
    setSending(wish.kind);
    setProblem(null);
    try {
      const decisions = calls.map(({ id, args_sha256 }) => ({ id, args_sha256, ...wish }));
      const { results } = await callApi("post", "/api/approvals/bulk", {
        body: { decisions },
        once: crypto.randomUUID(),
      });
      setDone({ wish, results, calls });
      onDone(wish.kind, results);
    } catch (error) {
      setProblem(error as Error);
    }
    setSending("");
  };
  return (
    <section className={css.panel} aria-label="Bulk decision">
      <Group justify="space-between" wrap="nowrap" align="start">
        <Title order={2} size="h4" ref={heading} tabIndex={-1} className={css.heading}>
          {done ? "Results" : `Decide ${calls.length} together`}
        </Title>
        <Button variant="default" size="compact-md" mih={36} onClick={onClose}>
          {done ? "Close" : "Back"}
        </Button>
      </Group>
      {!done && ids.length === 0 && (
        <EmptyState title="Nothing selected">Select requests in the list first.</EmptyState>
      )}
      {done ? (
        <BulkResults {...done} onAgain={() => setDone(null)} undo={undo} />
      ) : (
        <>
          <Tool calls={calls} />
          {missing > 0 && <Reading missing={missing} of={ids.length} />}
          <LeftOut left={left} />
          <Comparison calls={calls} />
          {problem && <ErrorMessage error={problem} />}
          <BulkForm
            calls={calls}
            reading={missing > 0}
            sending={sending}
            onSend={(wish) => void send(wish)}
          />
        </>
      )}
    </section>
  );
}

/** Read whole and kept up to date; what no longer fits is left out, and says why. */
function useCalls(ids: readonly string[]) {
  const reads = useQueries({
    queries: ids.map((id) => ({
      queryKey: approvalKey(id),
      queryFn: ({ signal }: { signal: AbortSignal }) => readApproval(id, signal),
    })),
  });
  const known = reads.flatMap(({ data }) => (data ? [data] : []));
  const calls: ApprovalSnapshot[] = [];
  const left: { call: ApprovalSnapshot; why: string }[] = [];
  for (const one of known) {
    const why = blockedReason(one as unknown as FeedRow, calls as unknown as FeedRow[]);
    if (why) left.push({ call: one, why });
    else calls.push(one);
  }
  const failed = reads.filter(({ isError }) => isError).length;
  return { calls, left, missing: ids.length - known.length - failed };
}

function Tool({ calls }: { calls: readonly ApprovalSnapshot[] }) {
  const first = calls[0];
  if (!first) return null;
  return (
    <Text>
      All requests call{" "}
      <Text span ff="monospace" fw={700}>
        {first.card.tool}
      </Text>
      .
    </Text>
  );
}

function Reading({ missing, of }: { missing: number; of: number }) {
  return (
    <div role="status">
      <Text size="sm">
        Loading {of - missing} of {of}.
      </Text>
      <Progress value={((of - missing) / of) * 100} aria-label="Loading progress" />
    </div>
  );
}

function LeftOut({ left }: { left: { call: ApprovalSnapshot; why: string }[] }) {
  if (!left.length) return null;
  return (
    <Alert color="yellow" title={`${left.length} left out`} role="status">
      <ul className={css.left}>
        {left.map(({ call, why }) => (
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
  onSend: (wish: BulkAnswer) => void;
}

const FEW = 5; // above that the number is typed
const LOOK = 600; // ms: what appeared or changed just now is not answered by accident

/** One answer for all that are shown; many are counted by whoever answers. */
function BulkForm({ calls, reading, sending, onSend }: BulkFormProps) {
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const isSettled = useSettled(calls.map(({ args_sha256 }) => args_sha256).join());
  const count = calls.length;
  const isCounted = count <= FEW || typed.trim() === String(count);
  const isReady = count > 0 && !reading && isSettled && isCounted && !sending;
  const all = (kind: BulkAnswer["kind"]) => calls.every(({ may_decide }) => may_decide.includes(kind));
  const button = (kind: BulkAnswer["kind"]) => ({
    loading: sending === kind,
    disabled: !isReady || !all(kind),
    title: all(kind) ? undefined : `Not all of these requests allow ${kind}.`,
    onClick: () => onSend(reason.trim() ? { kind, reason: reason.trim() } : { kind }),
  });
  return (
    <Stack gap="sm" className={css.form}>
      <div className={css.fields}>
        <TextInput
          label="Reason (optional, sent to the agent)"
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
