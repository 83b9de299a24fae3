import { Anchor, Button, Group, Paper, Stack, Text, TextInput, Title } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { callApi, type Schemas } from "../../api/client";
import { useLinkPreview } from "../../api/useLinkPreview";
import card from "../../card/ApprovalCard.module.css";
import { Arguments } from "../../card/Arguments";
import { CardHead } from "../../card/CardHead";
import { FindingsBox, type Acknowledgements } from "../../card/Findings";
import { ErrorMessage, Loading } from "../../components/States";
import css from "../ApprovalPage.module.css";

const NO_LOOKS: Acknowledgements = { looked: new Set(), wanted: new Set(), look: () => undefined };

/** Whoever opens the link of a mail without being signed in: they see what the mail shows, and can sign in. */
export default function LinkPreview({ id, token }: { id: string; token: string }) {
  useDocumentTitle("Approval · Interlock");
  const look = useLinkPreview(token);
  return (
    <main className={css.alone}>
      <Stack gap="md" className={css.page}>
        <Title order={1} size="h3">
          Approval
        </Title>
        {look.isPending && <Loading what="Loading approval" />}
        {look.error && <ErrorMessage error={look.error} />}
        {look.data ? (
          <Told id={id} token={token} link={look.data} />
        ) : (
          look.error && <AsUsual id={id} name="Sign in" />
        )}
      </Stack>
    </main>
  );
}

type Looked = Schemas["LinkedApproval"] & { read_at: number };

function Told({ id, token, link }: { id: string; token: string; link: Looked }) {
  const now = { ...link.approval, read_at: link.read_at };
  const isOpen = now.status === "pending";
  return (
    <>
      <Paper withBorder p="md">
        <Stack gap="sm" align="start">
          <Text>
            This link is for <strong>{link.person}</strong>.{" "}
            {isOpen ? "Sign in to see everything and to decide." : "There is nothing left to decide."}
          </Text>
          {link.codes && isOpen && <ByCode token={token} person={link.person} />}
          <AsUsual id={id} name={link.codes && isOpen ? "Sign in another way" : "Sign in"} />
        </Stack>
      </Paper>
      <article
        className={card.card}
        aria-label={now.card.sentence}
        data-approval={now.id}
        data-status={now.status}
      >
        <CardHead now={now} place="page" />
        <FindingsBox now={now} looks={NO_LOOKS} />
        <Arguments now={now} looks={NO_LOOKS} />
        <Text size="sm" c="dimmed">
          Long values and lists are shortened here. Sign in to see all of it.
        </Text>
      </article>
    </>
  );
}

/** A code that is mailed to the person of the link. Entering it leads on to the card, in this very page. */
function ByCode({ token, person }: { token: string; person: string }) {
  const queries = useQueryClient();
  const [ticket, setTicket] = useState("");
  const ask = useMutation({
    mutationFn: () => callApi("post", "/api/links/code", { body: { token } }),
    onSuccess: (asked) => setTicket(asked.ticket),
  });
  const enter = useMutation({
    mutationFn: (code: string) => callApi("post", "/api/links/session", { body: { token, ticket, code } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["me"] }),
  });
  if (!ticket)
    return (
      <>
        {ask.error && <ErrorMessage error={ask.error} />}
        <Button size="md" onClick={() => ask.mutate()} loading={ask.isPending}>
          E-mail me a code
        </Button>
      </>
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        enter.mutate(String(new FormData(event.currentTarget).get("code")));
      }}
    >
      <Stack gap="sm" align="start">
        <Text size="sm" role="status">
          A code was sent to {person}. It is valid for ten minutes, in this browser. If it does not arrive,
          sign in another way: at most three codes are sent in ten minutes.
        </Text>
        <TextInput
          name="code"
          label="Code"
          inputMode="numeric"
          autoComplete="one-time-code"
          maxLength={20}
          required
          autoFocus
        />
        {(enter.error ?? ask.error) && <ErrorMessage error={(enter.error ?? ask.error) as Error} />}
        <Group>
          <Button type="submit" size="md" loading={enter.isPending || enter.isSuccess}>
            Sign in
          </Button>
          <Button size="md" variant="default" onClick={() => ask.mutate()} loading={ask.isPending}>
            Send another code
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function AsUsual({ id, name }: { id: string; name: string }) {
  return (
    <Anchor underline="always" py={10} href={`/signin?next=${encodeURIComponent(`/a/${id}`)}`}>
      {name}
    </Anchor>
  );
}
