import { Alert, Button, Group, Progress, Text, Title } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { approvalKey, readApproval, type Read } from "../../api/approvals";
import { call, type Shapes } from "../../api/client";
import { Empty, Problem } from "../../components/States";
import css from "./Bulk.module.css";
import { BulkForm, type Wish } from "./BulkForm";
import { BulkResults } from "./BulkResults";
import { Comparison } from "./Comparison";
import type { Row } from "./feed";
import { hindrance } from "./selection";
import type { Undo } from "./useUndo";

export type Result = Shapes["BulkDecisionResult"];

interface Props {
  ids: readonly string[];
  onClose: () => void;
  /** How each ended; those that failed are still selected. */
  onDone: (kind: Wish["kind"], results: Result[]) => void;
  undo: Undo;
}

/** Several calls of one tool, decided together: what differs is in columns, and each is answered by itself. */
export default function Bulk({ ids, onClose, onDone, undo }: Props) {
  const [done, setDone] = useState<{ wish: Wish; results: Result[]; calls: Read[] } | null>(null);
  const [sending, setSending] = useState<Wish["kind"] | "">("");
  const [problem, setProblem] = useState<Error | null>(null);
  const { calls, left, missing } = useCalls(ids);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [done]); // where one begins to read, also for whoever hears it

  const send = async (wish: Wish) => {
    setSending(wish.kind);
    setProblem(null);
    try {
      const decisions = calls.map(({ id, args_sha256 }) => ({ id, args_sha256, ...wish }));
      const { results } = await call("post", "/api/approvals/bulk", {
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
    <section className={css.panel} aria-label="Decide together">
      <Group justify="space-between" wrap="nowrap" align="start">
        <Title order={2} size="h4" ref={heading} tabIndex={-1} className={css.heading}>
          {done ? "What became of them" : `Decide ${calls.length} together`}
        </Title>
        <Button variant="default" size="compact-md" mih={36} onClick={onClose}>
          {done ? "Close" : "Back"}
        </Button>
      </Group>
      {!done && ids.length === 0 && (
        <Empty title="Nothing is selected">Select requests in the list first.</Empty>
      )}
      {done ? (
        <BulkResults {...done} onAgain={() => setDone(null)} undo={undo} />
      ) : (
        <>
          <Tool calls={calls} />
          {missing > 0 && <Reading missing={missing} of={ids.length} />}
          <LeftOut left={left} />
          <Comparison calls={calls} />
          {problem && <Problem error={problem} />}
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
  const calls: Read[] = [];
  const left: { call: Read; why: string }[] = [];
  for (const one of known) {
    const why = hindrance(one as unknown as Row, calls as unknown as Row[]);
    if (why) left.push({ call: one, why });
    else calls.push(one);
  }
  const failed = reads.filter(({ isError }) => isError).length;
  return { calls, left, missing: ids.length - known.length - failed };
}

function Tool({ calls }: { calls: readonly Read[] }) {
  const first = calls[0];
  if (!first) return null;
  return (
    <Text>
      All of them call{" "}
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
        Reading {of - missing} of {of}.
      </Text>
      <Progress value={((of - missing) / of) * 100} aria-label="How much has been read" />
    </div>
  );
}

function LeftOut({ left }: { left: { call: Read; why: string }[] }) {
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
