import { Checkbox, Fieldset, Stack, Text } from "@mantine/core";
import { setSwitch } from "./agentChange";
import type { AgentDraft } from "./agentDraft";
import css from "./Agents.module.css";
import { ApprovalSwitch } from "./ApprovalSwitch";
import * as messages from "./editorMessages";
import { useAgents } from "./queries";

const CALLABLE = /^[A-Za-z0-9_-]{1,58}$/;

/** The agents that this one may call, each as the tool agent_NAME. */
export function SubagentPicker({
  name,
  chosen,
  switches,
  onChange,
  error,
}: {
  name: string;
  chosen: string[];
  switches: Record<string, boolean>;
  onChange: (fields: Partial<AgentDraft>) => void;
  error?: string;
}) {
  const agents = useAgents();
  const known = (agents.data?.items ?? [])
    .filter((agent) => agent.source !== "calls")
    .map((agent) => agent.name);
  const listed = [...new Set([...known, ...chosen])].filter((other) => other !== name).sort();
  const choose = (other: string, on: boolean) =>
    onChange({ agents: on ? [...chosen, other] : chosen.filter((each) => each !== other) });
  return (
    <Fieldset legend={messages.agentsItMayCall}>
      <Stack gap="xs">
        <Text size="sm" c="dimmed">
          {messages.subAgentHelp}
        </Text>
        {listed.length === 0 && <Text size="sm">{messages.thereAreNoOtherAgents}</Text>}
        <ul className={css.plain} aria-label={messages.subAgents}>
          {listed.map((other) => (
            <li key={other} className={css.choice}>
              <Checkbox
                label={other}
                description={known.includes(other) ? undefined : messages.thisAgentDoesNotExist}
                classNames={{ body: css.check, labelWrapper: css.checkLabel }}
                checked={chosen.includes(other)}
                disabled={!chosen.includes(other) && !CALLABLE.test(other)}
                onChange={(event) => choose(other, event.currentTarget.checked)}
              />
              {chosen.includes(other) && (
                <ApprovalSwitch
                  tool={`agent_${other}`}
                  checked={switches[`agent_${other}`] ?? false}
                  onChange={(on) =>
                    onChange({
                      tool_approvals: setSwitch(
                        switches,
                        { name: `agent_${other}`, asks_by_default: false },
                        on,
                      ),
                    })
                  }
                />
              )}
            </li>
          ))}
        </ul>
        {error && (
          <Text size="sm" c="red" role="alert">
            {error}
          </Text>
        )}
      </Stack>
    </Fieldset>
  );
}
