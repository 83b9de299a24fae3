import { Anchor, Button, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import { useMutation } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { callApi } from "../../api/client";
import { ErrorMessage } from "../../components/States";
import * as messages from "./messages";
import { SignInFrame } from "./SignInFrame";

const WORKSPACE = "interlock-workspace";
const DEFAULT = "default";

/** Signs in with a password or the identity provider, then continues to the requested page. */
export default function SignIn() {
  useDocumentTitle(messages.signInTitle);
  const next = useSearchParams()[0].get("next") ?? "";
  const signIn = useMutation({
    mutationFn: (fields: Record<string, string>) =>
      callApi("post", "/api/session", {
        body: {
          workspace: fields.workspace?.trim() || DEFAULT,
          name: fields.name ?? "",
          password: fields.password ?? "",
          next,
        },
      }),
    onSuccess: ({ next, workspace }) => {
      rememberWorkspace(workspace);
      location.replace(next);
    },
  });
  return (
    <SignInFrame title={messages.signIn}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          signIn.mutate(Object.fromEntries(new FormData(event.currentTarget)) as Record<string, string>);
        }}
      >
        <Stack gap="sm">
          <TextInput name="name" label={messages.name} autoComplete="username" required autoFocus />
          <PasswordInput name="password" label={messages.password} autoComplete="current-password" required />
          <Workspace />
          {signIn.error && <ErrorMessage error={signIn.error} />}
          <Button type="submit" loading={signIn.isPending || signIn.isSuccess}>
            {messages.signIn}
          </Button>
          <Text size="sm" c="dimmed">
            {messages.forgotPassword}
          </Text>
          {hasProvider() && (
            <Anchor
              underline="always"
              py={10}
              href={next ? `/auth/oidc?${new URLSearchParams({ next })}` : "/auth/oidc"}
            >
              {messages.signInWithYourOrganisation}
            </Anchor>
          )}
        </Stack>
      </form>
    </SignInFrame>
  );
}

/** Most servers have one workspace: the field is folded, and the last value is remembered. */
function Workspace() {
  const lastWorkspace = localStorage.getItem(WORKSPACE) ?? DEFAULT;
  return (
    <details open={lastWorkspace !== DEFAULT}>
      <summary>{messages.anotherWorkspace}</summary>
      <TextInput name="workspace" label={messages.workspace} defaultValue={lastWorkspace} mt="xs" />
    </details>
  );
}

function rememberWorkspace(workspace: string): void {
  if (workspace === DEFAULT) localStorage.removeItem(WORKSPACE);
  else localStorage.setItem(WORKSPACE, workspace);
}

function hasProvider(): boolean {
  return document.querySelector<HTMLMetaElement>("meta[name=provider]")?.content === "oidc";
}
