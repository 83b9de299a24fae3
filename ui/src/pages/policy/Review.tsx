import { Badge, Button, Group, List, Paper, Stack, Text, Textarea, Title } from "@mantine/core";
import { useEffect, useState } from "react";
import { ApiError } from "../../api/client";
import { EmptyState, ErrorMessage } from "../../components/States";
import { listProblems, summarizeDiff } from "./describePolicy";
import { LineDiff } from "./LineDiff";
import type { TabProps } from "./Policy";
import { ProblemList } from "./ProblemList";
import { usePolicyCheck, usePolicyVersions, usePutPolicy, type PolicyDiff, type RuleChange } from "./queries";
import type { PolicyDraft, PolicyDraftState } from "./usePolicyDraft";

/** The last look before a draft is put in force: what it changes, and why. */
export default function Review({ desk, go }: TabProps) {
  const [reason, setReason] = useState("");
  const put = usePutPolicy(({ version, new: fresh }) => {
    desk.discard();
    go("rules", fresh ? `Version ${version} is in force.` : "This policy was already in force.");
  });
  const { draft, inForce } = desk;
  const stale = isStale(put.error);
  useEffect(() => {
    if (stale) put.reset(); // what is in force now is read by then, and the conflict shows by itself
  }, [stale, put]);
  if (!draft) return <EmptyState title="No draft"> Change a rule or the text to review it here. </EmptyState>;
  if (draft.base.version !== inForce.version && !put.isPending)
    return <VersionConflict desk={desk} draft={draft} />;
  return (
    <Stack gap="md">
      <Changes desk={desk} draft={draft} go={go} />
      <form
        onSubmit={(event) => {
          event.preventDefault();
          put.mutate({ text: draft.text, seen: draft.base.version, reason: reason.trim() });
        }}
      >
        <Stack gap="sm">
          <Textarea
            label="Reason"
            description="Stored with the version, your name and the time."
            required
            maxLength={1000}
            rows={2}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
          {put.error && !stale && <ErrorMessage error={put.error} />}
          <Group>
            <Button type="submit" loading={put.isPending} disabled={!reason.trim()}>
              Put in force
            </Button>
            <Button variant="default" onClick={() => go("rehearse")}>
              Rehearse it first
            </Button>
            <Button variant="default" onClick={() => go("text")}>
              Back to the text
            </Button>
          </Group>
        </Stack>
      </form>
    </Stack>
  );
}

function Changes({ desk, draft, go }: TabProps & { draft: PolicyDraft }) {
  const checked = usePolicyCheck(draft.text).data;
  if (checked && !checked.valid)
    return (
      <ProblemList complaints={listProblems(checked)} onGo={() => go("text")} words="Fix it in the text." />
    );
  return (
    <>
      <Paper withBorder p="md" component="section" aria-labelledby="changes">
        <Title order={2} size="h4" id="changes">
          {" "}
          Changes{" "}
        </Title>
        {checked?.diff && <RuleDiff diff={checked.diff} />}
        {checked?.warnings.map((warning) => (
          <Text size="sm" key={warning}>
            Warning: {warning}
          </Text>
        ))}
      </Paper>
      <LineDiff before={desk.inForce.text} after={draft.text} label="Line-by-line diff" />
    </>
  );
}

function isStale(error: Error | null): boolean {
  return error instanceof ApiError && error.code === "stale";
}

/** Somebody else put another version in force while the draft was made: what they changed; nothing is lost. */
function VersionConflict({ desk, draft }: { desk: PolicyDraftState; draft: PolicyDraft }) {
  const newest = usePolicyVersions().data?.items.find(({ version }) => version === desk.inForce.version);
  return (
    <Paper withBorder p="md" component="section" role="alert" aria-labelledby="conflict">
      <Stack gap="sm">
        <Title order={2} size="h4" id="conflict">
          The policy has changed
        </Title>
        <Text size="sm">
          Your draft is based on version {draft.base.version}. Version {desk.inForce.version} is now in force{" "}
          {newest && `, by ${newest.author}${newest.reason && `: “${newest.reason}”`}`}. It changed:
        </Text>
        <LineDiff before={draft.base.text} after={desk.inForce.text} label="Changes made in the meantime" />
        <Text size="sm">
          Your draft is kept. Compared with the policy in force, lines that your draft does not have appear as
          removed: add them to your text, or leave them out on purpose.
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

/** What a draft changes, by rules and not by lines. */
function RuleDiff({ diff }: { diff: PolicyDiff }) {
  if (!summarizeDiff(diff))
    return <Text size="sm">The rules are the same; only comments or formatting differ.</Text>;
  return (
    <List size="sm" spacing={4}>
      {diff.rules.map((change) => (
        <List.Item key={`${change.kind} ${change.rule}`}>
          <Badge variant="default" size="sm" mr={6}>
            {change.kind}
          </Badge>
          <b>{change.rule}</b> {place(change)}
          {change.kind === "changed" && <Facets changes={change.changes} />}
        </List.Item>
      ))}
      {diff.defaults.length > 0 && (
        <List.Item>
          Defaults
          <Facets changes={diff.defaults} />
        </List.Item>
      )}
      {diff.agents.length > 0 && (
        <List.Item>
          {" "}
          Agent switches <Facets changes={diff.agents} />
        </List.Item>
      )}
    </List>
  );
}

function Facets({ changes }: { changes: RuleChange["changes"] }) {
  return (
    <List size="sm" withPadding>
      {changes.map(({ key, old, new: now }) => (
        <List.Item key={key}>
          {key}: {old ?? "not set"} → {now ?? "not set"}
        </List.Item>
      ))}
    </List>
  );
}

function place({ kind, old_place, new_place, old_name, moved }: RuleChange): string {
  if (kind === "renamed") return `was called “${old_name}”`;
  if (kind === "added") return `at position ${new_place}`;
  return moved && kind !== "removed" ? `from position ${old_place} to ${new_place}` : "";
}
