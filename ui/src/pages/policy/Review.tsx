import { Badge, Button, Group, List, Paper, Stack, Text, Textarea, Title } from "@mantine/core";
import { useEffect } from "react";
import { ApiError } from "../../api/client";
import { EmptyState, ErrorMessage } from "../../components/States";
import { listProblems, summarizeDiff } from "./describePolicy";
import { LineDiff } from "./LineDiff";
import type { TabProps } from "./Policy";
import { ProblemList } from "./ProblemList";
import { usePolicyCheck, usePolicyVersions, usePutPolicy, type PolicyDiff, type RuleChange } from "./queries";
import * as messages from "./tabMessages";
import type { PolicyDraft, PolicyDraftState } from "./usePolicyDraft";

/** The last review before a draft is put in force: its changes and the reason. */
export default function Review({ draftState, go }: TabProps) {
  const putPolicy = usePutPolicy(({ version, new: isNew }) => {
    draftState.discard();
    go("rules", isNew ? messages.versionIsInForce(version) : messages.wasAlreadyInForce);
  });
  const { draft, inForce } = draftState;
  const stale = isStale(putPolicy.error);
  useEffect(() => {
    if (stale) putPolicy.reset(); // the policy in force is reloaded by then, and the conflict is shown
  }, [stale, putPolicy]);
  if (!draft)
    return (
      <EmptyState
        title={messages.noDraft}
        action={
          <Button variant="default" onClick={() => go("text")}>
            {messages.openText}
          </Button>
        }
      >
        {messages.noDraftHelp}
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
            label={messages.reason}
            description={messages.storedWithVersion}
            required
            maxLength={1000}
            rows={2}
            value={reason}
            onChange={(event) => draftState.setReason(event.currentTarget.value)}
          />
          {putPolicy.error && !stale && <ErrorMessage error={putPolicy.error} />}
          <Group>
            <Button type="submit" loading={putPolicy.isPending} disabled={!reason.trim()}>
              {messages.putInForce}
            </Button>
            <Button variant="default" onClick={() => go("rehearse")}>
              {messages.rehearseItFirst}
            </Button>
            <Button variant="default" onClick={() => go("text")}>
              {messages.backToText}
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
      <ProblemList problems={listProblems(checked)} onGo={() => go("text")} advice={messages.fixItInText} />
    );
  return (
    <>
      <Paper withBorder p="md" component="section" aria-labelledby="changes">
        <Title order={2} size="h4" id="changes">
          {messages.changes}
        </Title>
        {checked?.diff && <RuleDiff diff={checked.diff} />}
        {checked?.warnings.map((warning) => (
          <Text size="sm" key={warning}>
            {messages.warningPrefix(warning)}
          </Text>
        ))}
      </Paper>
      <LineDiff before={draftState.inForce.text} after={draft.text} label={messages.lineByLineDiff} />
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
          {messages.policyHasChanged}
        </Title>
        <Text size="sm">
          {messages.draftIsBasedOn(draft.base.version, draftState.inForce.version)}
          {newest && messages.byAuthorSuffix(newest.author, newest.reason && `: “${newest.reason}”`)}
          {messages.itChanged}
        </Text>
        <LineDiff
          before={draft.base.text}
          after={draftState.inForce.text}
          label={messages.changesMadeInMeantime}
        />
        <Text size="sm">{messages.draftIsKept}</Text>
        <Group>
          <Button onClick={draftState.rebase}>
            {messages.compareMyDraftWithVersion(draftState.inForce.version)}
          </Button>
          <Button variant="default" onClick={draftState.discard}>
            {messages.discardMyDraft}
          </Button>
        </Group>
      </Stack>
    </Paper>
  );
}

/** The changes of a draft by rule. */
function RuleDiff({ diff }: { diff: PolicyDiff }) {
  if (!summarizeDiff(diff)) return <Text size="sm">{messages.onlyCommentsDiffer}</Text>;
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
          {messages.defaults}
          <FieldChanges changes={diff.defaults} />
        </List.Item>
      )}
      {diff.agents.length > 0 && (
        <List.Item>
          {messages.agentSwitches}
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
        <List.Item key={key}>{messages.settingChange(key, old, now)}</List.Item>
      ))}
    </List>
  );
}

function positionLabel({ kind, old_place, new_place, old_name, moved }: RuleChange): string {
  if (kind === "renamed") return messages.wasCalled(old_name);
  if (kind === "added") return messages.atPosition(new_place);
  return moved && kind !== "removed" ? messages.fromPositionTo(old_place, new_place) : "";
}
