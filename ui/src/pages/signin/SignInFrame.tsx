import { Center, Group, Paper, Stack, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { Logo } from "../../components/Logo";
import * as messages from "./messages";

/** The frame of the sign-in and welcome pages. */
export function SignInFrame({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Center mih="100dvh" p="md" component="main">
      <Paper withBorder p="xl" w="100%" maw={400}>
        <Stack gap="md">
          <div>
            <Group gap={8} mb="sm" fw={680} fz="lg" lts="-0.025em">
              <Logo />
              {messages.interlock}
            </Group>
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
