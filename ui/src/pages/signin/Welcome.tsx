import { Button, Stack, Text, TextInput } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { callApi, type Schemas } from "../../api/client";
import { NewPasswordInput } from "../../components/NewPasswordInput";
import { ErrorMessage, Loading } from "../../components/States";
import * as messages from "./messages";
import { SignInFrame } from "./SignInFrame";

/** A one-time link: its token is in the fragment, so that it is in no request; inspecting does not use it up. */
export default function Welcome() {
  useDocumentTitle(messages.welcomeTitle);
  const token = useToken();
  const link = useQuery({
    queryKey: ["link", token],
    queryFn: () => callApi("post", "/api/session/link/inspect", { body: { token } }),
    staleTime: Infinity,
    retry: false,
  });
  return (
    <SignInFrame title={messages.welcome}>
      {link.isPending && <Loading />}
      {link.error && <ErrorMessage error={link.error} />}
      {link.data && <LinkForm token={token} link={link.data} />}
    </SignInFrame>
  );
}

function LinkForm({ token, link }: { token: string; link: Schemas["SignInLinkInfo"] }) {
  const signIn = useMutation({
    mutationFn: (fields: Record<string, string>) =>
      callApi("post", "/api/session/link", {
        body: { token, name: fields.name ?? "", password: fields.password ?? "" },
      }),
    onSuccess: ({ next }) => location.replace(next),
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        signIn.mutate(Object.fromEntries(new FormData(event.currentTarget)) as Record<string, string>);
      }}
    >
      <Stack gap="sm">
        <Text size="sm">
          {messages.linkSignsYouIn(link.role, link.name, link.workspace)}
          {!link.new && messages.passwordIsOptional}
        </Text>
        {!link.name && (
          <TextInput name="name" label={messages.name} autoComplete="username" required autoFocus />
        )}
        <NewPasswordInput
          name="password"
          label={messages.password}
          description={messages.newPasswordHint(link.new)}
          required={link.new}
        />
        {signIn.error && <ErrorMessage error={signIn.error} />}
        <Button type="submit" loading={signIn.isPending || signIn.isSuccess}>
          {messages.signIn}
        </Button>
      </Stack>
    </form>
  );
}

/** The token is removed from the history; another link in the same tab works too. */
function useToken(): string {
  const [token, setToken] = useState(() => location.hash.slice(1));
  useEffect(() => {
    const readToken = () => {
      if (location.hash.length > 1) setToken(location.hash.slice(1));
      history.replaceState(null, "", location.pathname);
    };
    readToken();
    addEventListener("hashchange", readToken);
    return () => removeEventListener("hashchange", readToken);
  }, []);
  return token;
}
