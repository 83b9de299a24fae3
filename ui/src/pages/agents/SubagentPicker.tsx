import { Checkbox, Fieldset, Stack, Text } from "@mantine/core";
import { setSwitch } from "./agentChange";
import type { AgentDraft } from "./agentDraft";
import css from "./Agents.module.css";
import { ApprovalSwitch } from "./ApprovalSwitch";
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
    <Fieldset legend="Agents it may call">
      <Stack gap="xs">
        <Text size="sm" c="dimmed">
          A sub-agent works in its own conversation, with its own tools. It can tighten an approval of this
          agent, never loosen it.
        </Text>
        {listed.length === 0 && <Text size="sm">There are no other agents.</Text>}
        <ul className={css.plain} aria-label="Sub-agents">
          {listed.map((other) => (
            <li key={other} className={css.choice}>
              <Checkbox
                label={other}
                description={known.includes(other) ? undefined : "This agent does not exist."}
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
