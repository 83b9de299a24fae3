import { Alert, Button, Group, List, NativeSelect, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { callApi, type Schemas } from "../../../api/client";
import { ErrorMessage } from "../../../components/States";
import { fieldProblem, formatDateTime, useSendMutation } from "../data";
import { describeGrant } from "./GrantDetails";

const LASTS = [
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

/** A person says once, in writing, what they would approve anyway. */
export function NewGrant({ tool, agent, onDone }: NewGrantProps) {
  const make = useSendMutation(
    (body: Schemas["GrantBody"], once) => callApi("post", "/api/grants", { body, once }),
    ["grants"],
  );
  if (make.data) return <Made grant={make.data} onDone={onDone} />;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        make.mutate(wantedIn(event.currentTarget));
      }}
    >
      <Stack gap="sm">
        <Scope tool={tool} agent={agent} whenProblem={fieldProblem(make.error, "/when")} />
        <Limits problem={fieldProblem(make.error, "/max_uses") ?? fieldProblem(make.error, "/budget")} />
        <Textarea name="reason" label="Reason" autosize minRows={2} maxLength={2000} required />
        {make.error && <ErrorMessage error={make.error} />}
        <Group>
          <Button type="submit" loading={make.isPending}>
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
      <NativeSelect name="lasts" label="Duration" data={LASTS} defaultValue="8h" />
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

/** What was made, in words, and what may surprise about it. */
function Made({ grant, onDone }: { grant: Schemas["CreatedGrant"]; onDone: () => void }) {
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

function wantedIn(form: HTMLFormElement): Schemas["GrantBody"] {
  const given = new FormData(form);
  const text = (name: string) => String(given.get(name) ?? "").trim();
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
