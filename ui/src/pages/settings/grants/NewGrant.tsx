import { Alert, Button, Group, List, NativeSelect, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { callApi, fieldProblem, type Schemas } from "../../../api/client";
import { useSendMutation } from "../../../components/mutations";
import { ErrorMessage } from "../../../components/States";
import { formatDateTime } from "../../../components/TimeAgo";
import { describeGrant } from "./GrantDetails";
import * as messages from "./messages";

interface NewGrantProps {
  tool: string;
  agent: string;
  onDone: () => void;
}

/** The form for a new grant. */
export function NewGrant({ tool, agent, onDone }: NewGrantProps) {
  const create = useSendMutation(
    (body: Schemas["GrantBody"], idempotencyKey) => callApi("post", "/api/grants", { body, idempotencyKey }),
    ["grants"],
  );
  if (create.data) return <CreatedGrantNotice grant={create.data} onDone={onDone} />;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate(readForm(event.currentTarget));
      }}
    >
      <Stack gap="sm">
        <Scope tool={tool} agent={agent} whenProblem={fieldProblem(create.error, "/when")} />
        <Limits problem={fieldProblem(create.error, "/max_uses") ?? fieldProblem(create.error, "/budget")} />
        <Textarea name="reason" label={messages.reason} autosize minRows={2} maxLength={2000} required />
        {create.error && <ErrorMessage error={create.error} />}
        <Group>
          <Button type="submit" loading={create.isPending}>
            {messages.createGrant}
          </Button>
          <Button variant="default" onClick={onDone}>
            {messages.cancel}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function Scope({
  tool,
  agent,
  whenProblem,
}: {
  tool: string;
  agent: string;
  whenProblem: string | undefined;
}) {
  const tools = useQuery({
    queryKey: ["tools"],
    queryFn: ({ signal }) => callApi("get", "/api/tools", { signal }),
  });
  return (
    <>
      <TextInput
        name="tool"
        label={messages.tool}
        description={messages.boundToDefinition}
        defaultValue={tool}
        list="grant-tools"
        autoComplete="off"
        required
      />
      <datalist id="grant-tools">
        {tools.data?.items.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <TextInput
        name="agent"
        label={messages.agent}
        description={messages.matchesAnyCharacters}
        defaultValue={agent}
        required
      />
      <TextInput
        name="when"
        label={messages.conditionCelOptional}
        description={messages.conditionExample}
        error={whenProblem}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
      />
    </>
  );
}

function Limits({ problem }: { problem: string | undefined }) {
  return (
    <>
      <NativeSelect name="lasts" label={messages.duration} data={messages.DURATIONS} defaultValue="8h" />
      <TextInput name="uses" label={messages.maximumNumberOfCalls} inputMode="numeric" pattern="[0-9]*" />
      <Group grow align="end">
        <TextInput name="budget" label={messages.totalBudgetOptional} inputMode="decimal" error={problem} />
        <TextInput name="budget_of" label={messages.argumentToSum} />
      </Group>
    </>
  );
}

/** The created grant, with its warnings. */
function CreatedGrantNotice({ grant, onDone }: { grant: Schemas["CreatedGrant"]; onDone: () => void }) {
  return (
    <Stack gap="sm" role="status">
      <Text>{messages.grantSummary(grant.tool, describeGrant(grant), formatDateTime(grant.expires_at))}</Text>
      {grant.warnings.length > 0 && (
        <Alert color="yellow" title={messages.warnings}>
          <List size="sm">
            {grant.warnings.map((warning) => (
              <List.Item key={warning}>{warning}</List.Item>
            ))}
          </List>
        </Alert>
      )}
      <Group>
        <Button onClick={onDone}>{messages.done}</Button>
      </Group>
    </Stack>
  );
}

function readForm(form: HTMLFormElement): Schemas["GrantBody"] {
  const formData = new FormData(form);
  const text = (name: string) => String(formData.get(name) ?? "").trim();
  return {
    tool: text("tool"),
    agent: text("agent"),
    when: text("when"),
    expires_in: text("lasts"),
    reason: text("reason"),
    max_uses: text("uses") ? Number(text("uses")) : null,
    budget: text("budget"),
    budget_of: text("budget_of"),
  };
}
