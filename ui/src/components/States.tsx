import { Alert, Anchor, Button, Center, Loader, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";

/** For what takes a moment; a screen reader hears it too. */
export function Loading({ what = "Loading" }: { what?: string }) {
  return (
    <Center mih={160} role="status" aria-label={what}>
      <Loader />
    </Center>
  );
}

/** What went wrong, in the server's own words, and the way on. */
export function ErrorMessage({ error, again }: { error: Error; again?: () => void }) {
  return (
    <Alert color="red" title="This did not work" role="alert" my="md">
      <Stack gap="sm" align="start">
        <Text size="sm">{error.message}</Text>
        {again && (
          <Button size="xs" variant="default" onClick={again}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

/** A list with nothing in it says so, and why that is all right or what to do. */
export function EmptyState({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <Center mih={160}>
      <Stack align="center" gap={4} maw={420} ta="center">
        <Text fw={600}>{title}</Text>
        <Text size="sm" c="dimmed" component="div">
          {children}
        </Text>
      </Stack>
    </Center>
  );
}

export function NotFound() {
  return (
    <Stack gap="xs">
      <Title order={1} size="h3">
        Page not found
      </Title>
      <Text>
        Go to the{" "}
        <Anchor component={Link} href="/inbox">
          inbox
        </Anchor>
        .
      </Text>
    </Stack>
  );
}
