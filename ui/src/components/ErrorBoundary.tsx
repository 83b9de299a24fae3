import { Button, Group, Stack, Text, Title } from "@mantine/core";
import { Component, type ReactNode } from "react";

const GONE = /dynamically imported module|importing a module script failed|unable to preload/i;

/** A part of the page that is not on the server any more: it was updated since this tab was opened. */
export function isOutdatedBuild(error: unknown): boolean {
  return error instanceof Error && GONE.test(error.message);
}

/** A page that fails leaves the rest standing, and says what to do. `of` is another for another page. */
export class ErrorBoundary extends Component<
  { of: string; children: ReactNode },
  { error: unknown; of: string }
> {
  override state = { error: null as unknown, of: this.props.of };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  static getDerivedStateFromProps(props: { of: string }, state: { error: unknown; of: string }) {
    return props.of === state.of ? null : { error: null, of: props.of };
  }

  override render() {
    const { error } = this.state;
    return error === null ? this.props.children : <Broken error={error} />;
  }
}

function Broken({ error }: { error: unknown }) {
  const outdated = isOutdatedBuild(error);
  return (
    <Stack gap="sm" maw={560} role="alert">
      <Title order={1} size="h3">
        {outdated ? "This page could not be loaded" : "This page failed"}
      </Title>
      <Text>
        {outdated
          ? "Interlock was probably updated since you opened it. Reload to get the new version."
          : "An error stopped this page. Nothing was decided or sent. Reload the page. If it fails again, report this error to the operator of this server:"}
      </Text>
      {!outdated && (
        <Text ff="monospace" size="sm">
          {String(error)}
        </Text>
      )}
      <Group>
        <Button onClick={() => location.reload()}>Reload</Button>
      </Group>
    </Stack>
  );
}
