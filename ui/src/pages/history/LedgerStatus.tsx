import { Alert, Button, Code, Group, List, Paper, Progress, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { callApi, type Schemas } from "../../api/client";
import { isAdmin, useMe } from "../../api/currentUser";
import { ErrorMessage, Loading } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import css from "./History.module.css";
import * as messages from "./ledgerMessages";

/** The head of the ledger, its verification and export. */
export function LedgerStatus() {
  return (
    <div className={css.status}>
      <HeadSection />
      <LedgerVerification />
      <ExportSection />
    </div>
  );
}

function HeadSection() {
  const head = useQuery({
    queryKey: ["audit", "head"],
    queryFn: ({ signal }) => callApi("get", "/api/audit/head", { signal }),
    refetchInterval: 10_000,
  });
  if (head.isPending) return <Loading label={messages.loadingHead} />;
  if (head.error) return <ErrorMessage error={head.error} onRetry={() => void head.refetch()} />;
  const { seq, link, at, fingerprint } = head.data;
  return (
    <Paper withBorder p="md" component="section" aria-label={messages.head}>
      <Stack gap={6}>
        <Title order={2} size="h5">
          {messages.head}
        </Title>
        <Text size="sm">
          {messages.entryNumber(seq)}
          {at > 0 && (
            <>
              , <TimeAgo at={new Date(at).toISOString()} />
            </>
          )}
        </Text>
        <Code block className={css.hash}>
          {link}
        </Code>
        <Text size="sm">
          {fingerprint ? (
            <>
              {messages.signedWithKey} <Code>{fingerprint}</Code>.
            </>
          ) : (
            messages.notSigned
          )}
        </Text>
      </Stack>
    </Paper>
  );
}

function ExportSection() {
  const { data: me } = useMe();
  return (
    <Paper withBorder p="md" component="section" aria-label={messages.exportLabel}>
      <Stack gap={6} align="start">
        <Title order={2} size="h5">
          {messages.exportLabel}
        </Title>
        <Group gap="xs">
          <Button component="a" href="/api/audit/head" download="head.json" variant="default">
            {messages.downloadHead}
          </Button>
          {isAdmin(me) && (
            <Button component="a" href="/api/audit/export" download variant="default">
              {messages.exportLedger}
            </Button>
          )}
        </Group>
        <Text size="sm">
          {messages.storedHeadHelp}
          {isAdmin(me) && messages.toVerifyWithoutThisServer}
        </Text>
        {isAdmin(me) && (
          <Code block className={css.hash}>
            interlock audit verify --export FILE --head head.json
          </Code>
        )}
        {!isAdmin(me) && <Text size="sm">{messages.adminsCanExportWholeLedger}</Text>}
      </Stack>
    </Paper>
  );
}

type Verification = Schemas["VerificationJson"];
const KEY = ["audit", "verification"];

/** Starts a verification on the server, shows its progress, and keeps the result visible. */
function LedgerVerification() {
  const queries = useQueryClient();
  const state = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => callApi("get", "/api/audit/verification", { signal }),
    refetchInterval: (query) => (query.state.data?.running ? 400 : 30_000),
  });
  const start = useMutation({
    mutationFn: () => callApi("post", "/api/audit/verify", {}),
    onSuccess: (verification) => queries.setQueryData(KEY, verification),
    onError: () => queries.invalidateQueries({ queryKey: KEY }),
  });
  const running = state.data?.running;
  const last = state.data?.last;
  return (
    <Paper withBorder p="md" component="section" aria-label={messages.verification}>
      <Stack gap={6} align="stretch">
        <Title order={2} size="h5">
          {messages.verification}
        </Title>
        {state.error && <ErrorMessage error={state.error} onRetry={() => void state.refetch()} />}
        {start.error && <ErrorMessage error={start.error} />}
        {running && <VerificationProgress now={running} />}
        {!running && last && <VerificationResult last={last} />}
        {!running && !last && state.data && <Text size="sm">{messages.notVerifiedSinceStart}</Text>}
        <Button
          style={{ alignSelf: "start" }}
          loading={start.isPending || Boolean(running)}
          onClick={() => start.mutate()}
        >
          {messages.verifyNow}
        </Button>
      </Stack>
    </Paper>
  );
}

function VerificationProgress({ now }: { now: Verification }) {
  const part = now.of ? (100 * now.done) / now.of : 0;
  return (
    <div role="status">
      <Text size="sm">{now.of ? messages.ofEntriesChecked(now.done, now.of) : messages.starting}</Text>
      <Progress value={part} aria-label={messages.verificationProgress} />
    </div>
  );
}

function VerificationResult({ last }: { last: Verification }) {
  const { title, color, text } = describeVerification(last);
  return (
    <Alert color={color} title={title} role="status" data-verified={last.state}>
      <Text size="sm">
        {text} <TimeAgo at={last.began} />
        {messages.byPersonSuffix(last.by)}
      </Text>
      {last.faults.length > 0 && (
        <List size="sm" mt="xs" aria-label={messages.violationsHeading}>
          {last.faults.map((fault, place) => (
            <List.Item key={place}>
              {fault.seq > 0 && messages.entryPrefix(fault.seq)}
              {fault.message}
            </List.Item>
          ))}
        </List>
      )}
    </Alert>
  );
}

/** A verification in words: what was verified, up to which entry, and how long it took. */
export function describeVerification(last: Verification): { title: string; color: string; text: string } {
  const took = `${last.seconds < 10 ? last.seconds.toFixed(1) : Math.round(last.seconds)} s`;
  const checked = messages.entriesAndApprovals(
    pluralize(last.entries, messages.entry, messages.entries),
    pluralize(last.approvals, messages.approval, messages.approvals),
  );
  const erased = last.erased
    ? messages.contentWasErasedAsRecorded(pluralize(last.erased, messages.entry, messages.entries))
    : "";
  if (last.state === "valid")
    return {
      title: messages.ledgerIsIntact,
      color: "green",
      text: messages.everythingIsConsistent(checked, last.head?.seq ?? 0, took, erased),
    };
  if (last.state === "invalid")
    return {
      title: messages.ledgerIsNotIntact(pluralize(last.fault_count, messages.violation, messages.violations)),
      color: "red",
      text: messages.keepCopyOfDatabase(checked, took, truncationNote(last)),
    };
  return {
    title: messages.verificationDidNotComplete,
    color: "orange",
    text: messages.verificationProblem(last.problem),
  };
}

const truncationNote = (last: Verification): string =>
  last.fault_count > last.faults.length ? messages.firstViolationsAreShown(last.faults.length) : "";

const pluralize = (count: number, one: string, many: string): string =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
