import { Button, Code, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { call } from "../../api/client";
import { isAdmin, useMe } from "../../api/me";
import { Ago } from "../../components/Time";
import { Loading, Problem } from "../../components/States";
import css from "./History.module.css";
import { Verify } from "./Verify";

/** Where the record ends, whether it was verified, and how to take it along. */
export function LedgerStatus() {
  return (
    <div className={css.status}>
      <Head />
      <Verify />
      <Export />
    </div>
  );
}

function Head() {
  const head = useQuery({
    queryKey: ["audit", "head"],
    queryFn: ({ signal }) => call("get", "/api/audit/head", { signal }),
    refetchInterval: 10_000,
  });
  if (head.isPending) return <Loading what="Reading the head" />;
  if (head.error) return <Problem error={head.error} again={() => void head.refetch()} />;
  const { seq, link, at, fingerprint } = head.data;
  return (
    <Paper withBorder p="md" component="section" aria-label="Head">
      <Stack gap={6}>
        <Title order={2} size="h5">
          Head
        </Title>
        <Text size="sm">
          Entry {seq.toLocaleString()}
          {at > 0 && (
            <>
              , <Ago at={new Date(at).toISOString()} />
            </>
          )}
        </Text>
        <Code block className={css.hash}>
          {link}
        </Code>
        <Text size="sm">
          {fingerprint ? (
            <>
              Signed by the key <Code>{fingerprint}</Code>.
            </>
          ) : (
            "Not signed: the server has no signing key."
          )}
        </Text>
      </Stack>
    </Paper>
  );
}

function Export() {
  const { data: me } = useMe();
  return (
    <Paper withBorder p="md" component="section" aria-label="Take it along">
      <Stack gap={6} align="start">
        <Title order={2} size="h5">
          Take it along
        </Title>
        <Group gap="xs">
          <Button component="a" href="/api/audit/head" download="head.json" variant="default">
            Download the head
          </Button>
          {isAdmin(me) && (
            <Button component="a" href="/api/audit/export" download variant="default">
              Export the ledger
            </Button>
          )}
        </Group>
        <Text size="sm">
          A head that is kept elsewhere shows a tail that was cut. To verify without this server:
        </Text>
        <Code block className={css.hash}>
          interlock audit verify --export FILE --head head.json
        </Code>
        {!isAdmin(me) && <Text size="sm">Admins can export the whole ledger.</Text>}
      </Stack>
    </Paper>
  );
}
