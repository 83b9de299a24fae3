import { Button, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useVersions } from "./data";
import type { Desk, Draft } from "./draft";
import { LineDiff } from "./LineDiff";

/** Somebody else put another version in force while the draft was made: what they changed; nothing is lost. */
export function Conflict({ desk, draft }: { desk: Desk; draft: Draft }) {
  const newest = useVersions().data?.items.find(({ version }) => version === desk.inForce.version);
  return (
    <Paper withBorder p="md" component="section" role="alert" aria-labelledby="conflict">
      <Stack gap="sm">
        <Title order={2} size="h4" id="conflict">
          The policy was changed meanwhile
        </Title>
        <Text size="sm">
          Your draft was made from version {draft.base.version}. Now version {desk.inForce.version} is in
          force
          {newest && `, put there by ${newest.author}${newest.reason && `: “${newest.reason}”`}`}. This is
          what they changed:
        </Text>
        <LineDiff before={draft.base.text} after={desk.inForce.text} label="What was changed meanwhile" />
        <Text size="sm">
          Your draft is kept as it is. If you compare it with what is in force now, their lines show as taken
          out where your draft does not have them: put them into your text, or leave them out on purpose.
        </Text>
        <Group>
          <Button onClick={desk.rebase}>Compare my draft with version {desk.inForce.version}</Button>
          <Button variant="default" onClick={desk.discard}>
            Discard my draft
          </Button>
        </Group>
      </Stack>
    </Paper>
  );
}
