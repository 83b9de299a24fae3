import { Anchor, Stack, Text, Title } from "@mantine/core";
import { Link } from "wouter";
import { usePageTitle } from "./PageTitle";

/** A mistyped address, with a way back. */
export default function NotFound() {
  usePageTitle("Page not found");
  return (
    <Stack gap="xs">
      <Title order={1} size="h3">
        Page not found
      </Title>
      <Text>
        There is no page at this address. Check it for typing errors, or go to the{" "}
        <Anchor component={Link} href="/inbox">
          inbox
        </Anchor>
        .
      </Text>
    </Stack>
  );
}
