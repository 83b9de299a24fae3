import { Group, Stack, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { usePageTitle } from "./PageTitle";

/** A page with its title and actions. */
export function Page({
  title,
  opened = title,
  actions,
  children,
}: {
  title: string;
  /** What is open on the page, for the title of the browser's tab. */
  opened?: string;
  actions?: ReactNode;
  children: ReactNode;
}) {
  usePageTitle(opened, "page");
  return (
    <Stack gap="md">
      <Group justify="space-between" gap="sm">
        <Title order={1} size="h3">
          {title}
        </Title>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}
