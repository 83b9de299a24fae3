import { Alert, Button, Code, Group, List, Paper, Progress, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { callApi, type Schemas } from "../../api/client";
import { isAdmin, useMe } from "../../api/currentUser";
import { ErrorMessage, Loading } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import css from "./History.module.css";

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
  if (head.isPending) return <Loading label="Loading head" />;
  if (head.error) return <ErrorMessage error={head.error} onRetry={() => void head.refetch()} />;
  const { seq, link, at, fingerprint } = head.data;
  return (
    <Paper withBorder p="md" component="section" aria-label="Head">
      <Stack gap={6}>
        <Title order={2} size="h5">
          Head
        </Title>
        <Text size="sm">
          Entry {seq.toLocaleString("en")}
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
              Signed with the key <Code>{fingerprint}</Code>.
            </>
          ) : (
            "Not signed: the server has no signing key."
          )}
        </Text>
      </Stack>
    </Paper>
  );
}

function ExportSection() {
  const { data: me } = useMe();
  return (
    <Paper withBorder p="md" component="section" aria-label="Export">
      <Stack gap={6} align="start">
        <Title order={2} size="h5">
          {" "}
          Export{" "}
        </Title>
        <Group gap="xs">
          <Button component="a" href="/api/audit/head" download="head.json" variant="default">
            Download head
          </Button>
          {isAdmin(me) && (
            <Button component="a" href="/api/audit/export" download variant="default">
              Export ledger
            </Button>
          )}
        </Group>
        <Text size="sm">
          A head stored elsewhere shows later whether entries were removed from the end.
          {isAdmin(me) && " To verify without this server:"}
        </Text>
        {isAdmin(me) && (
          <Code block className={css.hash}>
            interlock audit verify --export FILE --head head.json
          </Code>
        )}
        {!isAdmin(me) && <Text size="sm">Admins can export the whole ledger.</Text>}
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
    <Paper withBorder p="md" component="section" aria-label="Verification">
      <Stack gap={6} align="stretch">
        <Title order={2} size="h5">
          Verification
        </Title>
        {state.error && <ErrorMessage error={state.error} onRetry={() => void state.refetch()} />}
        {start.error && <ErrorMessage error={start.error} />}
        {running && <VerificationProgress now={running} />}
        {!running && last && <VerificationResult last={last} />}
        {!running && !last && state.data && <Text size="sm">Not verified since the server was started.</Text>}
        <Button
          style={{ alignSelf: "start" }}
          loading={start.isPending || Boolean(running)}
          onClick={() => start.mutate()}
        >
          Verify now
        </Button>
      </Stack>
    </Paper>
  );
}

function VerificationProgress({ now }: { now: Verification }) {
  const part = now.of ? (100 * now.done) / now.of : 0;
  return (
    <div role="status">
      <Text size="sm">
        {now.of
          ? `${now.done.toLocaleString("en")} of ${now.of.toLocaleString("en")} entries checked.`
          : "Starting…"}
      </Text>
      <Progress value={part} aria-label="Verification progress" />
    </div>
  );
}

function VerificationResult({ last }: { last: Verification }) {
  const { title, color, text } = describeVerification(last);
  return (
    <Alert color={color} title={title} role="status" data-verified={last.state}>
      <Text size="sm">
        {text} <TimeAgo at={last.began} />, by {last.by}.
      </Text>
      {last.faults.length > 0 && (
        <List size="sm" mt="xs" aria-label="Violations">
          {last.faults.map((fault, place) => (
            <List.Item key={place}>
              {fault.seq > 0 && `Entry ${fault.seq}: `}
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
  const checked = `${pluralize(last.entries, "entry", "entries")} and ${pluralize(last.approvals, "approval", "approvals")}`;
  const erased = last.erased
    ? ` The content of ${pluralize(last.erased, "entry", "entries")} was erased, as recorded in the ledger.`
    : "";
  if (last.state === "valid")
    return {
      title: "The ledger is intact",
      color: "green",
      text: `The hash chain, the invariants and the stored rows are consistent: ${checked}, up to entry ${(last.head?.seq ?? 0).toLocaleString("en")}, in ${took}.${erased} Verified`,
    };
  if (last.state === "invalid")
    return {
      title: `The ledger is not intact: ${pluralize(last.fault_count, "violation", "violations")}`,
      color: "red",
      text: `Keep a copy of the database as it is. ${checked} were checked in ${took}.${truncationNote(last)} Verified`,
    };
  return { title: "The verification did not complete", color: "orange", text: `${last.problem} Tried` };
}

const truncationNote = (last: Verification): string =>
  last.fault_count > last.faults.length ? ` The first ${last.faults.length} violations are shown.` : "";

const pluralize = (count: number, one: string, many: string): string =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
