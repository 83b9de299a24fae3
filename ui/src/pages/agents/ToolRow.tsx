import { Badge, Code, Switch, Text } from "@mantine/core";
import { useState } from "react";
import { write } from "../../api/json";
import { Problem } from "../../components/States";
import css from "./Agents.module.css";
import { useChange, type AgentInfo, type Reason, type ToolInfo } from "./data";
import { GateOff } from "./GateOff";
import { because, isGated, switched } from "./switching";

const MEANS =
  "On: a person is asked before this agent runs the tool, also where a rule would allow it. " +
  "Off: it runs unasked, unless a rule of the policy asks.";
const NOT_YOURS =
  "Only admins, and people who may approve every call of this tool, can switch its question off.";

/** One tool: what it is, whether it asks and why, and the switch. */
export function ToolRow({ agent, tool, role }: { agent: AgentInfo; tool: ToolInfo; role: string }) {
  const [closing, setClosing] = useState(false);
  const change = useChange(agent.name);
  const gated = isGated(tool);
  const fixed = whyFixed(tool, role, gated);
  const turn = (on: boolean) => {
    if (on) change.mutate(switched(agent, tool, true, ""));
    else setClosing(true);
  };
  return (
    <li className={css.tool} data-tool={tool.name}>
      <div>
        <div className={css.name}>
          <Text component="span" ff="monospace" fw={600}>
            {tool.name}
          </Text>
          <Verdict tool={tool} />
          <Badge variant="default" size="sm">
            {tool.effect ?? "effect unknown"}
          </Badge>
        </div>
        {tool.description && <Text size="sm">{tool.description}</Text>}
      </div>
      <div className={css.switch}>
        <Switch
          label="Require approval?"
          labelPosition="left"
          classNames={{ label: css.touch }}
          aria-label={`Require approval for ${tool.name}?`}
          title={fixed || MEANS}
          checked={gated}
          disabled={fixed !== "" || change.isPending}
          onChange={(event) => turn(event.currentTarget.checked)}
        />
      </div>
      {change.error && (
        <div className={css.more}>
          <Problem error={change.error} />
        </div>
      )}
      {closing && gated && <GateOff agent={agent} tool={tool} onClose={() => setClosing(false)} />}
      <details className={css.more}>
        <summary>
          <Text component="span" size="sm">
            {why(tool)}
          </Text>
        </summary>
        <Details tool={tool} fixed={fixed} />
      </details>
    </li>
  );
}

const VERDICTS: Record<ToolInfo["verdict"], [name: string, color: string]> = {
  ask: ["asks", "steel"],
  allow: ["runs unasked", "gray"],
  deny: ["denied", "red"],
  depends: ["depends on the arguments", "steel"],
};

function Verdict({ tool }: { tool: ToolInfo }) {
  const [name, color] = VERDICTS[tool.verdict];
  const plain = tool.verdict === "allow";
  return (
    <Badge size="sm" color={color} variant={plain ? "default" : "filled"} data-verdict={tool.verdict}>
      {name}
    </Badge>
  );
}

function Details({ tool, fixed }: { tool: ToolInfo; fixed: string }) {
  return (
    <>
      {tool.reasons.map((reason, number) => (
        <Text size="sm" key={number}>
          {number > 0 && `Otherwise: ${because(reason, tool)} `}
          {terms(reason)}
        </Text>
      ))}
      {fixed && <Text size="sm">{fixed}</Text>}
      <Text size="sm" c="dimmed">
        From {sourceWords(tool)}
        {tool.confirm === "chat" && "; asks in the conversation first"}
        {tool.definitions > 1 && `; ${tool.definitions} definitions were seen`}.
      </Text>
      {tool.schema && (
        <Code block className={css.schema} tabIndex={0} role="region" aria-label={`Schema of ${tool.name}`}>
          {write(tool.schema, 2)}
        </Code>
      )}
    </>
  );
}

/** On which terms people are asked. */
function terms({ verdict, needs, answers, expires_in }: Reason): string {
  if (verdict !== "ask") return "";
  return `Needs ${needs}. Answers: ${answers.join(", ")}. Expires after ${expires_in}.`;
}

function why(tool: ToolInfo): string {
  const first = tool.reasons[0];
  return first ? because(first, tool) : "";
}

function sourceWords(tool: ToolInfo): string {
  if (tool.source === "pack") return `the pack ${tool.pack}`;
  if (tool.source === "seen") return "calls that were seen";
  if (tool.source === "pin") return "a pin";
  if (tool.source.startsWith("mcp:")) return `the MCP server ${tool.source.slice(4)}`;
  if (tool.source === "agent") return "another agent";
  return tool.source === "documents" ? "the documents" : "the configuration";
}

/** Why the switch cannot be moved; empty if it can. */
function whyFixed(tool: ToolInfo, role: string, gated: boolean): string {
  if (tool.always_asks) return `It always asks: ${tool.always_asks}.`;
  if (role === "viewer") return "Viewers change nothing.";
  return gated && !tool.may_switch_off ? NOT_YOURS : "";
}
