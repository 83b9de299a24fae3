import { Paper, Stack, Text, Title } from "@mantine/core";
import { useId, type ReactNode } from "react";

/** A section of a page with a heading. */
export function Section({
  title,
  about,
  children,
}: {
  title: string;
  about?: ReactNode;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <Paper withBorder p="md" component="section" aria-labelledby={id}>
      <Stack gap="sm">
        <div>
          <Title order={2} size="h5" id={id}>
            {title}
          </Title>
          {about && (
            <Text size="sm" c="dimmed" component="div">
              {about}
            </Text>
          )}
        </div>
        {children}
      </Stack>
    </Paper>
  );
}
