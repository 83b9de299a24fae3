import { Alert, Button, List, Paper, Progress, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { call, type Shapes } from "../../api/client";
import { Ago } from "../../components/Time";
import { Problem } from "../../components/States";
import { inWords } from "./verdict";

type Verification = Shapes["VerificationJson"];
const KEY = ["audit", "verification"];

/** Has the ledger checked beside the server, shows how far it is, and keeps what came of it in sight. */
export function Verify() {
  const queries = useQueryClient();
  const state = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => call("get", "/api/audit/verification", { signal }),
    refetchInterval: (query) => (query.state.data?.running ? 400 : 30_000),
  });
  const begin = useMutation({
    mutationFn: () => call("post", "/api/audit/verify", {}),
    onSuccess: (told) => queries.setQueryData(KEY, told),
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
        {state.error && <Problem error={state.error} again={() => void state.refetch()} />}
        {begin.error && <Problem error={begin.error} />}
        {running && <Running now={running} />}
        {!running && last && <Verdict last={last} />}
        {!running && !last && state.data && <Text size="sm">Not verified since the server was started.</Text>}
        <Button
          style={{ alignSelf: "start" }}
          loading={begin.isPending || Boolean(running)}
          onClick={() => begin.mutate()}
        >
          Verify now
        </Button>
      </Stack>
    </Paper>
  );
}

function Running({ now }: { now: Verification }) {
  const part = now.of ? (100 * now.done) / now.of : 0;
  return (
    <div role="status">
      <Text size="sm">
        {now.of
          ? `${now.done.toLocaleString()} of ${now.of.toLocaleString()} entries are read.`
          : "The check begins."}
      </Text>
      <Progress value={part} aria-label="Entries that are read" />
    </div>
  );
}

function Verdict({ last }: { last: Verification }) {
  const { title, color, text } = inWords(last);
  return (
    <Alert color={color} title={title} role="status" data-verified={last.state}>
      <Text size="sm">
        {text} <Ago at={last.began} />, by {last.by}.
      </Text>
      {last.faults.length > 0 && (
        <List size="sm" mt="xs" aria-label="Faults">
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
