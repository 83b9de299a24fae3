import {
  Button,
  Group,
  List,
  NativeSelect,
  Paper,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  TextInput,
  Title,
} from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSearchParams } from "wouter";
import { callApi } from "../../api/client";
import { parseJson } from "../../api/json";
import { ErrorMessage } from "../../components/States";
import type { TabProps } from "./Policy";
import css from "./Policy.module.css";
import { useExplain, type ExplainRequest, type ExplainResult, type ExplainStep } from "./queries";
import { VerdictBadge } from "./RuleCard";
import * as messages from "./tabMessages";

/** Explains the verdict on a hypothetical call: the matching rule, and why earlier ones do not match. */
export default function Explain({ draftState }: TabProps) {
  const [params] = useSearchParams();
  const [tool, setTool] = useState(params.get("tool") ?? "");
  const [args, setArgs] = useState(params.get("args") ?? "{}");
  const [agent, setAgent] = useState(params.get("agent") ?? "");
  const [user, setUser] = useState("");
  const [chosenEffect, setChosenEffect] = useState<string>();
  const [policyChoice, setPolicyChoice] = useState("draft");
  const [caller, setCaller] = useState("key");
  const registeredEffect = useRegisteredEffect(tool);
  const explain = useExplain();
  const effect = chosenEffect ?? registeredEffect ?? "";
  const argsProblem = findProblem(args);
  const submit = () => {
    const call = {
      tool,
      args: parseJson(args),
      ...(agent && { agent }),
      ...(user && { initiated_by: user }),
    };
    const callerData = callerFields(caller, agent, user);
    const request: ExplainRequest = {
      call: effect ? { ...call, ...callerData, effect } : { ...call, ...callerData },
    };
    explain.mutate(
      draftState.draft && policyChoice === "draft" ? { ...request, policy: draftState.text } : request,
    );
  };
  return (
    <Paper withBorder p="md">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!argsProblem) submit();
        }}
      >
        <Stack gap="sm">
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <TextInput
              label={messages.tool}
              required
              value={tool}
              onChange={(event) => setTool(event.currentTarget.value)}
            />
            <NativeSelect
              label={messages.effect}
              description={chosenEffect === undefined && registeredEffect ? messages.asRegistered : undefined}
              data={messages.EFFECTS}
              value={effect}
              onChange={(event) => setChosenEffect(event.currentTarget.value)}
            />
            <TextInput
              label={messages.agent}
              value={agent}
              onChange={(event) => setAgent(event.currentTarget.value)}
            />
            <TextInput
              label={messages.requester}
              description={messages.personAgentWorksFor}
              inputWrapperOrder={["label", "input", "description", "error"]}
              value={user}
              onChange={(event) => setUser(event.currentTarget.value)}
            />
            <NativeSelect
              label={messages.caller}
              data={messages.CALLERS}
              value={caller}
              onChange={(event) => setCaller(event.currentTarget.value)}
            />
          </SimpleGrid>
          <Textarea
            label={messages.argumentsLabel}
            description={messages.json}
            rows={4}
            styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
            value={args}
            error={argsProblem}
            onChange={(event) => setArgs(event.currentTarget.value)}
          />
          {draftState.draft && (
            <NativeSelect
              label={messages.policy}
              value={policyChoice}
              onChange={(event) => setPolicyChoice(event.currentTarget.value)}
              data={[
                { value: "draft", label: messages.yourDraftInSentence },
                { value: "now", label: messages.policyInForce },
              ]}
            />
          )}
          <Button type="submit" loading={explain.isPending} w="fit-content">
            {messages.explain}
          </Button>
          {explain.error && <ErrorMessage error={explain.error} />}
        </Stack>
      </form>
      {explain.data ? (
        <ExplanationSteps explained={explain.data} />
      ) : (
        <Text size="sm" c="dimmed" mt="sm">
          {messages.noCallIsMadeOrRecorded}
        </Text>
      )}
    </Paper>
  );
}

/** The key of the call, if it has one. */
function callerFields(caller: string, agent: string, user: string): Record<string, unknown> {
  if (caller === "embedded") return { embedded: true };
  if (caller === "key") return {};
  return { key: { agents: agent ? [agent] : [], requester: user || "none" } };
}

/** The registered effect of a tool, once its full name is typed. */
function useRegisteredEffect(tool: string): string | undefined {
  const [typed] = useDebouncedValue(tool, 300);
  const found = useQuery({
    queryKey: ["tools", "named", typed],
    queryFn: ({ signal }) => callApi("get", "/api/tools", { query: { q: typed, limit: 20 }, signal }),
    enabled: typed !== "",
  });
  return found.data?.items.find(({ name }) => name === tool)?.effect ?? undefined;
}

function findProblem(args: string): string | undefined {
  try {
    const value = parseJson(args);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? undefined
      : messages.argumentsExample;
  } catch {
    return messages.thisIsNotValidJson;
  }
}

/** The verdict, and every rule up to the deciding one. */
function ExplanationSteps({ explained }: { explained: ExplainResult }) {
  return (
    <Stack gap="sm" mt="md" component="section" aria-labelledby="verdict" role="status">
      <Group gap="xs">
        <Title order={2} size="h4" id="verdict">
          {messages.verdict}
        </Title>
        <VerdictBadge verdict={explained.verdict} />
      </Group>
      <Text size="sm">{messages.judgedAsCaller(explained.judged_as)}</Text>
      <Text size="sm">{messages.accordingTo(explained.policy.origin, explained.why)}</Text>
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

function StepLine({ step, decides }: { step: ExplainStep; decides: boolean }) {
  return (
    <span className={css.step} data-holds={step.holds || undefined}>
      <b>{step.rule}</b> ({step.then}
      {step.shadow && messages.shadowSuffix}
      {step.line !== null && messages.lineSuffix(step.line)}): {step.why}
      {decides && <b> {messages.decides}</b>}
    </span>
  );
}
