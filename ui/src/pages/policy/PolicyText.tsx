import { Alert, Button, Group, List, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { lazy, Suspense, useRef, useState } from "react";
import { ErrorMessage, Loading } from "../../components/States";
import { listProblems, parseProblem } from "./describePolicy";
import type { TabProps } from "./Policy";
import css from "./Policy.module.css";
import { ProblemList } from "./ProblemList";
import { TYPING_PAUSE, usePolicyCheck, usePolicyTemplates } from "./queries";
import type { PolicyDraftState } from "./usePolicyDraft";
import type { YamlEditorHandle } from "./YamlEditor";

const YamlEditor = lazy(() => import("./YamlEditor"));

/** The policy as YAML, looked at by the server whenever somebody stops typing. */
export default function PolicyText({ desk }: TabProps) {
  const [settled] = useDebouncedValue(desk.text, TYPING_PAUSE);
  const checked = usePolicyCheck(settled);
  const editor = useRef<YamlEditorHandle>(null);
  const complaints = listProblems(checked.data);
  const warnings = checked.data?.warnings.map(parseProblem) ?? [];
  return (
    <Stack gap="sm">
      <Templates desk={desk} />
      <Suspense fallback={<Loading what="Loading editor" />}>
        <YamlEditor ref={editor} value={desk.text} complaints={complaints} onChange={desk.change} />
      </Suspense>
      {complaints.length > 0 && (
        <ProblemList complaints={complaints} onGo={(line) => editor.current?.goTo(line)} />
      )}
      {warnings.length > 0 && (
        <Alert color="yellow" variant="outline" title="Valid, with warnings" role="note">
          <List size="sm">
            {warnings.map(({ line, message }, at) => (
              <List.Item key={at}>
                {line > 0 && `Line ${line}: `}
                {message}
              </List.Item>
            ))}
          </List>
        </Alert>
      )}
      <Text size="sm" c="dimmed" role="status">
        {checked.isFetching || settled !== desk.text
          ? "Checking…"
          : checked.data?.valid
            ? `Valid, with ${checked.data.rules.length === 1 ? "1 rule" : `${checked.data.rules.length} rules`}.`
            : ""}
        {checked.error && `It cannot be checked: ${checked.error.message}`}
      </Text>
    </Stack>
  );
}

/** Whole policies to start from; taking one fills the draft, and can be undone in the text. */
function Templates({ desk }: { desk: PolicyDraftState }) {
  const [open, setOpen] = useState(false);
  return (
    <details className={css.fold} open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Start from a template</summary>
      {open && <Choices desk={desk} onTaken={() => setOpen(false)} />}
    </details>
  );
}

function Choices({ desk, onTaken }: { desk: PolicyDraftState; onTaken: () => void }) {
  const templates = usePolicyTemplates();
  if (templates.isPending) return <Loading />;
  if (templates.error) return <ErrorMessage error={templates.error} again={() => void templates.refetch()} />;
  const take = (body: string) => {
    desk.change(body);
    onTaken();
  };
  return (
    <Stack gap="sm" py="xs">
      {templates.data.items.map(({ name, summary, body }) => (
        <Group key={name} gap="sm" wrap="nowrap" align="center">
          <Button
            variant="default"
            miw={110}
            onClick={() => take(body)}
            aria-label={`Use the template ${name}`}
          >
            {name}
          </Button>
          <Text size="sm">{summary}</Text>
        </Group>
      ))}
      <Text size="sm" c="dimmed">
        {desk.draft
          ? "It replaces your draft; Ctrl+Z in the text restores it."
          : "It becomes a draft. Nothing is in force until you confirm it."}
      </Text>
    </Stack>
  );
}
