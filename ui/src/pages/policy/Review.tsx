import { Badge, Button, Group, List, Paper, Stack, Text, Textarea, Title } from "@mantine/core";
import { useEffect } from "react";
import { ApiError } from "../../api/client";
import { EmptyState, ErrorMessage } from "../../components/States";
import { listProblems, summarizeDiff } from "./describePolicy";
import { LineDiff } from "./LineDiff";
import type { TabProps } from "./Policy";
import { ProblemList } from "./ProblemList";
import { usePolicyCheck, usePolicyVersions, usePutPolicy, type PolicyDiff, type RuleChange } from "./queries";
import type { PolicyDraft, PolicyDraftState } from "./usePolicyDraft";

/** The last review before a draft is put in force: its changes and the reason. */
export default function Review({ draftState, go }: TabProps) {
  const putPolicy = usePutPolicy(({ version, new: isNew }) => {
    draftState.discard();
    go("rules", isNew ? `Version ${version} is in force.` : "This policy was already in force.");
  });
  const { draft, inForce } = draftState;
  const stale = isStale(putPolicy.error);
  useEffect(() => {
    if (stale) putPolicy.reset(); // the policy in force is reloaded by then, and the conflict is shown
  }, [stale, putPolicy]);
  if (!draft)
    return (
      <EmptyState
        title="No draft"
        action={
          <Button variant="default" onClick={() => go("text")}>
            Open the text
          </Button>
        }
      >
        Change a rule or the text to review it here.
      </EmptyState>
    );
  if (draft.base.version !== inForce.version && !putPolicy.isPending)
    return <VersionConflict draftState={draftState} draft={draft} />;
  const reason = draft.reason ?? "";
  return (
    <Stack gap="md">
      <Changes draftState={draftState} draft={draft} go={go} />
      <form
        onSubmit={(event) => {
          event.preventDefault();
          putPolicy.mutate({ text: draft.text, baseVersion: draft.base.version, reason: reason.trim() });
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
            onChange={(event) => draftState.setReason(event.currentTarget.value)}
          />
          {putPolicy.error && !stale && <ErrorMessage error={putPolicy.error} />}
          <Group>
            <Button type="submit" loading={putPolicy.isPending} disabled={!reason.trim()}>
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

function Changes({ draftState, draft, go }: TabProps & { draft: PolicyDraft }) {
  const checked = usePolicyCheck(draft.text).data;
  if (checked && !checked.valid)
    return (
      <ProblemList problems={listProblems(checked)} onGo={() => go("text")} advice="Fix it in the text." />
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
      <LineDiff before={draftState.inForce.text} after={draft.text} label="Line-by-line diff" />
    </>
  );
}

function isStale(error: Error | null): boolean {
  return error instanceof ApiError && error.code === "stale";
}

/** Another version was put in force after the draft was started: shows its changes; nothing is lost. */
function VersionConflict({ draftState, draft }: { draftState: PolicyDraftState; draft: PolicyDraft }) {
  const newest = usePolicyVersions().data?.items.find(
    ({ version }) => version === draftState.inForce.version,
  );
  return (
    <Paper withBorder p="md" component="section" role="alert" aria-labelledby="conflict">
      <Stack gap="sm">
        <Title order={2} size="h4" id="conflict">
          The policy has changed
        </Title>
        <Text size="sm">
          Your draft is based on version {draft.base.version}. Version {draftState.inForce.version} is now in
          force{newest && `, by ${newest.author}${newest.reason && `: “${newest.reason}”`}`}. It changed:
        </Text>
        <LineDiff
          before={draft.base.text}
          after={draftState.inForce.text}
          label="Changes made in the meantime"
        />
        <Text size="sm">
          Your draft is kept. Compared with the policy in force, lines that your draft does not have appear as
          removed: add them to your text, or leave them out on purpose.
        </Text>
        <Group>
          <Button onClick={draftState.rebase}>
            Compare my draft with version {draftState.inForce.version}
          </Button>
          <Button variant="default" onClick={draftState.discard}>
            Discard my draft
          </Button>
        </Group>
      </Stack>
    </Paper>
  );
}

/** The changes of a draft by rule. */
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
          <b>{change.rule}</b> {positionLabel(change)}
          {change.kind === "changed" && <FieldChanges changes={change.changes} />}
        </List.Item>
      ))}
      {diff.defaults.length > 0 && (
        <List.Item>
          Defaults
          <FieldChanges changes={diff.defaults} />
        </List.Item>
      )}
      {diff.agents.length > 0 && (
        <List.Item>
          Agent switches
          <FieldChanges changes={diff.agents} />
        </List.Item>
      )}
    </List>
  );
}

function FieldChanges({ changes }: { changes: RuleChange["changes"] }) {
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

function positionLabel({ kind, old_place, new_place, old_name, moved }: RuleChange): string {
  if (kind === "renamed") return `was called “${old_name}”`;
  if (kind === "added") return `at position ${new_place}`;
  return moved && kind !== "removed" ? `from position ${old_place} to ${new_place}` : "";
}
