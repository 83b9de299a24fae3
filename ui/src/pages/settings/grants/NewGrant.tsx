import { Alert, Button, Group, List, NativeSelect, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { callApi, fieldProblem, type Schemas } from "../../../api/client";
import { useSendMutation } from "../../../components/mutations";
import { ErrorMessage } from "../../../components/States";
import { formatDateTime } from "../../../components/TimeAgo";
import { describeGrant } from "./GrantDetails";

const DURATIONS = [
  { value: "1h", label: "an hour" },
  { value: "8h", label: "8 hours" },
  { value: "1d", label: "a day" },
  { value: "7d", label: "a week" },
  { value: "30d", label: "30 days" },
  { value: "365d", label: "a year" },
];

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
        <Textarea name="reason" label="Reason" autosize minRows={2} maxLength={2000} required />
        {create.error && <ErrorMessage error={create.error} />}
        <Group>
          <Button type="submit" loading={create.isPending}>
            Create grant
          </Button>
          <Button variant="default" onClick={onDone}>
            Cancel
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
        label="Tool"
        description="Bound to its current definition; a changed tool needs approval again."
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
        label="Agent"
        description="* matches any characters."
        defaultValue={agent}
        required
      />
      <TextInput
        name="when"
        label="Condition (CEL, optional)"
        description={'For example: args.to == "bob" && args.amount < 100'}
        error={whenProblem}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
      />
    </>
  );
}

function Limits({ problem }: { problem: string | undefined }) {
  return (
    <>
      <NativeSelect name="lasts" label="Duration" data={DURATIONS} defaultValue="8h" />
      <TextInput
        name="uses"
        label="Maximum number of calls (optional)"
        inputMode="numeric"
        pattern="[0-9]*"
      />
      <Group grow align="end">
        <TextInput name="budget" label="Total budget (optional)" inputMode="decimal" error={problem} />
        <TextInput name="budget_of" label="Argument to sum" />
      </Group>
    </>
  );
}

/** The created grant, with its warnings. */
function CreatedGrantNotice({ grant, onDone }: { grant: Schemas["CreatedGrant"]; onDone: () => void }) {
  return (
    <Stack gap="sm" role="status">
      <Text>
        {grant.tool}: {describeGrant(grant)}, until {formatDateTime(grant.expires_at)}.
      </Text>
      {grant.warnings.length > 0 && (
        <Alert color="yellow" title="Warnings">
          <List size="sm">
            {grant.warnings.map((warning) => (
              <List.Item key={warning}>{warning}</List.Item>
            ))}
          </List>
        </Alert>
      )}
      <Group>
        <Button onClick={onDone}>Done</Button>
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
