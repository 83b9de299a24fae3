import { Anchor, Button, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import { useMutation } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { callApi } from "../../api/client";
import { ErrorMessage } from "../../components/States";
import { SignInFrame } from "./SignInFrame";

const WORKSPACE = "interlock-workspace";
const DEFAULT = "default";

/** Signs in with a password or the identity provider, then continues to the requested page. */
export default function SignIn() {
  useDocumentTitle("Sign in · Interlock");
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
    <SignInFrame title="Sign in">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          signIn.mutate(Object.fromEntries(new FormData(event.currentTarget)) as Record<string, string>);
        }}
      >
        <Stack gap="sm">
          <TextInput name="name" label="Name" autoComplete="username" required autoFocus />
          <PasswordInput name="password" label="Password" autoComplete="current-password" required />
          <Workspace />
          {signIn.error && <ErrorMessage error={signIn.error} />}
          <Button type="submit" loading={signIn.isPending || signIn.isSuccess}>
            Sign in
          </Button>
          <Text size="sm" c="dimmed">
            No password yet, or forgot it? An admin can create a sign-in link for you.
          </Text>
          {hasProvider() && (
            <Anchor
              underline="always"
              py={10}
              href={next ? `/auth/oidc?${new URLSearchParams({ next })}` : "/auth/oidc"}
            >
              Sign in with your organisation
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
      <summary>Another workspace</summary>
      <TextInput name="workspace" label="Workspace" defaultValue={lastWorkspace} mt="xs" />
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
