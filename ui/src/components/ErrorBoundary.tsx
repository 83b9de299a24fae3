import { Button, Group, Stack, Text, Title } from "@mantine/core";
import { Component, type ReactNode } from "react";
import * as messages from "./messages";

const MISSING_MODULE = /dynamically imported module|importing a module script failed|unable to preload/i;

/** Whether a chunk is missing because the server was updated after this tab was opened. */
export function isOutdatedBuild(error: unknown): boolean {
  return error instanceof Error && MISSING_MODULE.test(error.message);
}

/** Shows an error instead of the failed page. Another `resetKey` resets it. */
export class ErrorBoundary extends Component<
  { resetKey: string; children: ReactNode },
  { error: unknown; resetKey: string }
> {
  override state = { error: null as unknown, resetKey: this.props.resetKey };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  static getDerivedStateFromProps(props: { resetKey: string }, state: { error: unknown; resetKey: string }) {
    return props.resetKey === state.resetKey ? null : { error: null, resetKey: props.resetKey };
  }

  override render() {
    const { error } = this.state;
    return error === null ? this.props.children : <ErrorPage error={error} />;
  }
}

function ErrorPage({ error }: { error: unknown }) {
  const outdated = isOutdatedBuild(error);
  return (
    <Stack gap="sm" maw={560} role="alert">
      <Title order={1} size="h3">
        {outdated ? messages.thisPageCouldNotBeLoaded : messages.thisPageFailed}
      </Title>
      <Text>{outdated ? messages.probablyUpdated : messages.anErrorStoppedThisPage}</Text>
      {!outdated && (
        <Text ff="monospace" size="sm">
          {String(error)}
        </Text>
      )}
      <Group>
        <Button onClick={() => location.reload()}>{messages.reload}</Button>
      </Group>
    </Stack>
  );
}
