import { Group, List, Stack, Text, Title } from "@mantine/core";
import type { Explained, Step } from "./data";
import css from "./Policy.module.css";
import { Then } from "./RuleCard";

/** The verdict, and every rule up to the one that decided. */
export function Explanation({ explained }: { explained: Explained }) {
  return (
    <Stack gap="sm" mt="md" component="section" aria-labelledby="verdict" role="status">
      <Group gap="xs">
        <Title order={2} size="h4" id="verdict">
          Verdict
        </Title>
        <Then verdict={explained.verdict} />
      </Group>
      <Text size="sm">Judged {explained.judged_as}.</Text>
      <Text size="sm">
        According to {explained.policy.origin}, {explained.why}
      </Text>
      {explained.steps.length > 0 && (
        <List type="ordered" size="sm" spacing={4}>
          {explained.steps.map((step, at) => (
            <List.Item key={at}>
              <StepLine
                step={step}
                decides={step.rule === explained.rule && at === explained.steps.length - 1}
              />
            </List.Item>
          ))}
        </List>
      )}
      {explained.notes.map((note) => (
        <Text size="sm" key={note}>
          {note}
        </Text>
      ))}
    </Stack>
  );
}

function StepLine({ step, decides }: { step: Step; decides: boolean }) {
  return (
    <span className={css.step} data-holds={step.holds || undefined}>
      <b>{step.rule}</b> ({step.then}
      {step.shadow && ", shadow"}
      {step.line !== null && `, line ${step.line}`}): {step.why}
      {decides && <b> — decides</b>}
    </span>
  );
}
