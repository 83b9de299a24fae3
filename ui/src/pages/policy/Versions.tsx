import { Badge, Button, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import { LineDiff } from "./LineDiff";
import type { TabProps } from "./Policy";
import css from "./Policy.module.css";
import { usePolicyVersion, usePolicyVersions, type PolicyVersion } from "./queries";

/** Every version that was put in force; an earlier one is put back by making it the draft. */
export default function Versions({ desk, go }: TabProps) {
  const versions = usePolicyVersions();
  if (versions.isPending) return <Loading />;
  if (versions.error) return <ErrorMessage error={versions.error} again={() => void versions.refetch()} />;
  if (!versions.data.items.length)
    return (
      <EmptyState title="No versions yet">
        Until a policy is put in force, each tool's default decides.
      </EmptyState>
    );
  const back = (text: string) => {
    desk.change(text);
    go("review");
  };
  return (
    <ul className={css.plain} aria-label="Versions">
      {versions.data.items.map((version) => (
        <Row key={version.version} version={version} newest={desk.inForce.version} onBack={back} />
      ))}
    </ul>
  );
}

interface RowProps {
  version: PolicyVersion;
  newest: number;
  onBack: (text: string) => void;
}

function Row({ version, newest, onBack }: RowProps) {
  const [open, setOpen] = useState(false);
  return (
    <Paper withBorder p="md" component="li" mb="sm" data-version={version.version}>
      <Group gap="xs">
        <Title order={2} size="h5">
          Version {version.version}
        </Title>
        {version.version === newest && <Badge>in force</Badge>}
      </Group>
      <Text size="sm">{version.reason || "No reason was given."}</Text>
      <Text size="sm" c="dimmed">
        {version.author}, <TimeAgo at={version.at} /> · {version.sha256.slice(0, 12)}
      </Text>
      <details className={css.fold} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Changes</summary>
        {open && <What number={version.version} onBack={version.version === newest ? undefined : onBack} />}
      </details>
    </Paper>
  );
}

function What({ number, onBack }: { number: number; onBack?: (text: string) => void }) {
  const [own, before] = [usePolicyVersion(number), usePolicyVersion(number - 1)];
  const error = own.error ?? before.error;
  if (error) return <ErrorMessage error={error} />;
  if (!own.data || (number > 1 && !before.data)) return <Loading />;
  const { text } = own.data;
  return (
    <Stack gap="sm">
      <LineDiff before={before.data?.text ?? ""} after={text} label={`Changes in version ${number}`} />
      {onBack && (
        <Button variant="default" w="fit-content" onClick={() => onBack(text)}>
          Restore this version…
        </Button>
      )}
    </Stack>
  );
}
