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
import * as messages from "./messages";

const NO_ACKNOWLEDGEMENTS: Acknowledgements = {
  acknowledged: new Set(),
  required: new Set(),
  toggle: () => undefined,
};

/** A notification link opened without a session: shows the notification's content, and a sign-in. */
export default function LinkPreview({ id, token }: { id: string; token: string }) {
  useDocumentTitle(messages.approvalTitle);
  const preview = useLinkPreview(token);
  return (
    <main className={css.alone}>
      <Stack gap="md" className={css.page}>
        <Title order={1} size="h3">
          {messages.approval}
        </Title>
        {preview.isPending && <Loading label={messages.loadingApproval} />}
        {preview.error && <ErrorMessage error={preview.error} />}
        {preview.data ? (
          <PreviewCard id={id} token={token} link={preview.data} />
        ) : (
          preview.error && <SignInAnchor id={id} name={messages.signIn} />
        )}
      </Stack>
    </main>
  );
}

type LoadedLink = Schemas["LinkedApproval"] & { read_at: number };

function PreviewCard({ id, token, link }: { id: string; token: string; link: LoadedLink }) {
  const now = { ...link.approval, read_at: link.read_at };
  const isOpen = now.status === "pending";
  return (
    <>
      <Paper withBorder p="md">
        <Stack gap="sm" align="start">
          <Text>
            {messages.thisLinkIsFor} <strong>{link.person}</strong>
            {messages.signInOrNothingLeft(isOpen)}
          </Text>
          {link.codes && isOpen && <CodeForm token={token} person={link.person} />}
          <SignInAnchor id={id} name={link.codes && isOpen ? messages.signInAnotherWay : messages.signIn} />
        </Stack>
      </Paper>
      <article
        className={`${card.card} ${card.main}`}
        aria-label={now.card.sentence}
        data-approval={now.id}
        data-status={now.status}
      >
        <CardHead approval={now} location="page" />
        <FindingsBox now={now} acknowledgements={NO_ACKNOWLEDGEMENTS} />
        <Arguments approval={now} />
        <Text size="sm" c="dimmed">
          {messages.valuesAreShortened}
        </Text>
      </article>
    </>
  );
}

/** A code sent by e-mail to the link's recipient. Entering it signs them in on this page. */
function CodeForm({ token, person }: { token: string; person: string }) {
  const queries = useQueryClient();
  const [ticket, setTicket] = useState("");
  const requestCode = useMutation({
    mutationFn: () => callApi("post", "/api/links/code", { body: { token } }),
    onSuccess: (response) => setTicket(response.ticket),
  });
  const signIn = useMutation({
    mutationFn: (code: string) => callApi("post", "/api/links/session", { body: { token, ticket, code } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["me"] }),
  });
  if (!ticket)
    return (
      <>
        {requestCode.error && <ErrorMessage error={requestCode.error} />}
        <Button size="md" onClick={() => requestCode.mutate()} loading={requestCode.isPending}>
          {messages.eMailMeCode}
        </Button>
      </>
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        signIn.mutate(String(new FormData(event.currentTarget).get("code")));
      }}
    >
      <Stack gap="sm" align="start">
        <Text size="sm" role="status">
          {messages.codeWasSent(person)}
        </Text>
        <TextInput
          name="code"
          label={messages.code}
          inputMode="numeric"
          autoComplete="one-time-code"
          maxLength={20}
          required
          autoFocus
        />
        {(signIn.error ?? requestCode.error) && (
          <ErrorMessage error={(signIn.error ?? requestCode.error) as Error} />
        )}
        <Group>
          <Button type="submit" size="md" loading={signIn.isPending || signIn.isSuccess}>
            {messages.signIn}
          </Button>
          <Button
            size="md"
            variant="default"
            onClick={() => requestCode.mutate()}
            loading={requestCode.isPending}
          >
            {messages.sendAnotherCode}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function SignInAnchor({ id, name }: { id: string; name: string }) {
  return (
    <Anchor underline="always" py={10} href={`/signin?next=${encodeURIComponent(`/a/${id}`)}`}>
      {name}
    </Anchor>
  );
}
