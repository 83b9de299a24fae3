import { Alert, Button, Group, List, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { lazy, Suspense, useRef, useState } from "react";
import { ErrorMessage, Loading } from "../../components/States";
import { listProblems, parseProblem } from "./describePolicy";
import type { TabProps } from "./Policy";
import css from "./Policy.module.css";
import { ProblemList } from "./ProblemList";
import { TYPING_PAUSE, usePolicyCheck, usePolicyTemplates } from "./queries";
import * as messages from "./tabMessages";
import type { PolicyDraftState } from "./usePolicyDraft";
import type { YamlEditorHandle } from "./YamlEditor";

const YamlEditor = lazy(() => import("./YamlEditor"));

/** The policy as YAML, checked by the server after each pause in typing. */
export default function PolicyText({ draftState, line }: TabProps) {
  const [settled] = useDebouncedValue(draftState.text, TYPING_PAUSE);
  const checked = usePolicyCheck(settled);
  const editor = useRef<YamlEditorHandle>(null);
  const problems = listProblems(checked.data);
  const warnings = checked.data?.warnings.map(parseProblem) ?? [];
  return (
    <Stack gap="sm">
      <Templates draftState={draftState} />
      <Suspense fallback={<Loading label={messages.loadingEditor} />}>
        <YamlEditor
          ref={editor}
          value={draftState.text}
          line={line}
          problems={problems}
          onChange={draftState.change}
        />
      </Suspense>
      {problems.length > 0 && <ProblemList problems={problems} onGo={(line) => editor.current?.goTo(line)} />}
      {warnings.length > 0 && (
        <Alert color="yellow" variant="outline" title={messages.validWithWarnings} role="note">
          <List size="sm">
            {warnings.map(({ line, message }, at) => (
              <List.Item key={at}>
                {line > 0 && messages.linePrefix(line)}
                {message}
              </List.Item>
            ))}
          </List>
        </Alert>
      )}
      <Text size="sm" c="dimmed" role="status">
        {checked.isFetching || settled !== draftState.text
          ? messages.checking
          : checked.data?.valid
            ? messages.validWithRules(checked.data.rules.length)
            : ""}
        {checked.error && messages.itCannotBeChecked(checked.error.message)}
      </Text>
    </Stack>
  );
}

/** Templates; using one replaces the draft, which can be undone in the text. */
function Templates({ draftState }: { draftState: PolicyDraftState }) {
  const [open, setOpen] = useState(false);
  return (
    <details className={css.fold} open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{messages.startFromTemplate}</summary>
      {open && <TemplateList draftState={draftState} onUsed={() => setOpen(false)} />}
    </details>
  );
}

function TemplateList({ draftState, onUsed }: { draftState: PolicyDraftState; onUsed: () => void }) {
  const templates = usePolicyTemplates();
  if (templates.isPending) return <Loading />;
  if (templates.error)
    return <ErrorMessage error={templates.error} onRetry={() => void templates.refetch()} />;
  const applyTemplate = (body: string) => {
    draftState.change(body);
    onUsed();
  };
  return (
    <Stack gap="sm" py="xs">
      {templates.data.items.map(({ name, summary, body }) => (
        <Group key={name} gap="sm" wrap="nowrap" align="center">
          <Button
            variant="default"
            miw={110}
            onClick={() => applyTemplate(body)}
            aria-label={messages.useTemplate(name)}
          >
            {name}
          </Button>
          <Text size="sm">{summary}</Text>
        </Group>
      ))}
      <Text size="sm" c="dimmed">
        {draftState.draft ? messages.templateReplacesDraft : messages.templateBecomesDraft}
      </Text>
    </Stack>
  );
}
