import { Center, Paper, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

/** The frame of the sign-in and welcome pages. */
export function SignInFrame({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper withBorder p="xl" w="100%" maw={400}>
        <Stack gap="md">
          <div>
            <Text size="sm" c="dimmed">
              Interlock
            </Text>
            <Title order={1} size="h3">
              {title}
            </Title>
          </div>
          {children}
        </Stack>
      </Paper>
    </Center>
  );
}
