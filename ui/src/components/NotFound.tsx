import { Anchor, Stack, Text, Title } from "@mantine/core";
import { Link } from "wouter";
import * as messages from "./messages";
import { usePageTitle } from "./PageTitle";

/** A mistyped address, with a way back. */
export default function NotFound() {
  usePageTitle(messages.pageNotFound);
  return (
    <Stack gap="xs">
      <Title order={1} size="h3">
        {messages.pageNotFound}
      </Title>
      <Text>
        {messages.thereIsNoPage}{" "}
        <Anchor component={Link} href="/inbox">
          {messages.inbox}
        </Anchor>
        .
      </Text>
    </Stack>
  );
}
