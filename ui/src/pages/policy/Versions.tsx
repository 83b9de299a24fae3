import { Badge, Button, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import { LineDiff } from "./LineDiff";
import type { TabProps } from "./Policy";
import css from "./Policy.module.css";
import { usePolicyVersion, usePolicyVersions, type PolicyVersion } from "./queries";
import * as messages from "./tabMessages";

/** All versions; an earlier one is restored by making it the draft. */
export default function Versions({ draftState, go }: TabProps) {
  const versions = usePolicyVersions();
  if (versions.isPending) return <Loading />;
  if (versions.error) return <ErrorMessage error={versions.error} onRetry={() => void versions.refetch()} />;
  if (!versions.data.items.length)
    return (
      <EmptyState
        title={messages.noVersionsYet}
        action={
          <Button variant="default" onClick={() => go("text")}>
            {messages.writePolicy}
          </Button>
        }
      >
        {messages.noVersionsHelp}
      </EmptyState>
    );
  const restore = (text: string) => {
    draftState.change(text);
    go("review");
  };
  return (
    <ul className={css.plain} aria-label={messages.versions}>
      {versions.data.items.map((version) => (
        <VersionRow
          key={version.version}
          version={version}
          newest={draftState.inForce.version}
          onRestore={restore}
        />
      ))}
    </ul>
  );
}

interface RowProps {
  version: PolicyVersion;
  newest: number;
  onRestore: (text: string) => void;
}

function VersionRow({ version, newest, onRestore }: RowProps) {
  const [open, setOpen] = useState(false);
  return (
    <Paper withBorder p="md" component="li" mb="sm" data-version={version.version}>
      <Group gap="xs">
        <Title order={2} size="h5">
          {messages.versionNumber(version.version)}
        </Title>
        {version.version === newest && <Badge>{messages.inForce}</Badge>}
      </Group>
      <Text size="sm">{version.reason || messages.noReasonWasGiven}</Text>
      <Text size="sm" c="dimmed">
        {version.author}, <TimeAgo at={version.at} /> · {version.sha256.slice(0, 12)}
      </Text>
      <details className={css.fold} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{messages.changes}</summary>
        {open && (
          <VersionChanges
            number={version.version}
            onRestore={version.version === newest ? undefined : onRestore}
          />
        )}
      </details>
    </Paper>
  );
}

function VersionChanges({ number, onRestore }: { number: number; onRestore?: (text: string) => void }) {
  const [own, before] = [usePolicyVersion(number), usePolicyVersion(number - 1)];
  const error = own.error ?? before.error;
  if (error) return <ErrorMessage error={error} />;
  if (!own.data || (number > 1 && !before.data)) return <Loading />;
  const { text } = own.data;
  return (
    <Stack gap="sm">
      <LineDiff before={before.data?.text ?? ""} after={text} label={messages.changesInVersion(number)} />
      {onRestore && (
        <Button variant="default" w="fit-content" onClick={() => onRestore(text)}>
          {messages.restoreThisVersion}
        </Button>
      )}
    </Stack>
  );
}
