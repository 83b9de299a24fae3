import { Badge, Code, Text } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { stringifyJson } from "../../api/json";
import { ErrorMessage } from "../../components/States";
import { describeExpiry } from "../../components/expiry";
import { explainReason, isGated, makeGateChange, VERDICT_NAMES } from "./agentChange";
import css from "./Agents.module.css";
import { ApprovalSwitch } from "./ApprovalSwitch";
import * as messages from "./detailMessages";
import { useChangeAgent, type AgentInfo, type ToolInfo, type VerdictReason } from "./queries";

const GateOffForm = lazy(() => import("./GateOffForm"));

/** One tool: its description, its verdict with the reason, and its switch. */
export function ToolRow({ agent, tool, role }: { agent: AgentInfo; tool: ToolInfo; role: string }) {
  const [isConfirming, setConfirming] = useState(false);
  const change = useChangeAgent(agent.name);
  const gated = isGated(tool);
  const lockedReason = fixedReason(tool, role, gated);
  const setGate = (on: boolean) => {
    if (on) change.mutate(makeGateChange(agent, tool, true, ""));
    else setConfirming(true);
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
            {tool.effect ?? messages.effectUnknown}
          </Badge>
        </div>
        {tool.description && <Text size="sm">{tool.description}</Text>}
      </div>
      <ApprovalSwitch
        tool={tool.name}
        checked={gated}
        lockedReason={lockedReason}
        disabled={change.isPending}
        onChange={setGate}
      />
      {change.error && (
        <div className={css.more}>
          <ErrorMessage error={change.error} />
        </div>
      )}
      {isConfirming && gated && (
        <Suspense>
          <GateOffForm agent={agent} tool={tool} onClose={() => setConfirming(false)} />
        </Suspense>
      )}
      <details className={css.more}>
        <summary>
          <Text component="span" size="sm">
            {firstReason(tool)}
          </Text>
        </summary>
        <Details tool={tool} lockedReason={lockedReason} />
      </details>
    </li>
  );
}

const VERDICT_COLORS: Record<ToolInfo["verdict"], string> = {
  ask: "indigo",
  allow: "gray",
  deny: "red",
  depends: "indigo",
};

const QUESTION_TOOL = "request_human_input"; // the server's tool for questions: its card is the question itself

function Verdict({ tool }: { tool: ToolInfo }) {
  const plain = tool.verdict === "allow";
  return (
    <Badge
      size="sm"
      color={VERDICT_COLORS[tool.verdict]}
      variant={plain ? "default" : "filled"}
      data-verdict={tool.verdict}
    >
      {tool.name === QUESTION_TOOL ? messages.asksPerson : VERDICT_NAMES[tool.verdict]}
    </Badge>
  );
}

function Details({ tool, lockedReason }: { tool: ToolInfo; lockedReason: string }) {
  return (
    <>
      {tool.reasons.map((reason, number) => (
        <Text size="sm" key={number}>
          {number > 0 && messages.otherwise(explainReason(reason, tool))}
          {terms(reason)}
        </Text>
      ))}
      {lockedReason && <Text size="sm">{lockedReason}</Text>}
      <Text size="sm" c="dimmed">
        {messages.sourceOfTool(sourceLabel(tool))}
        {tool.confirm === "chat" && messages.confirmedInChatFirst}
        {tool.definitions > 1 && messages.definitionsWereSeen(tool.definitions)}.
      </Text>
      {tool.schema && (
        <Code
          block
          className={css.schema}
          tabIndex={0}
          role="region"
          aria-label={messages.schemaOf(tool.name)}
        >
          {stringifyJson(tool.schema, 2)}
        </Code>
      )}
    </>
  );
}

/** The terms of an approval. */
function terms({ verdict, needs, answers, expires_in }: VerdictReason): string {
  if (verdict !== "ask") return "";
  const end = expires_in ? messages.expiresAfter(describeExpiry(expires_in)) : "";
  return messages.needsAnswers(needs, answers.join(", "), end);
}

function firstReason(tool: ToolInfo): string {
  const first = tool.reasons[0];
  return first ? explainReason(first, tool) : "";
}

function sourceLabel(tool: ToolInfo): string {
  if (tool.source === "pack") return messages.thePack(tool.pack);
  if (tool.source === "seen") return messages.recordedCalls;
  if (tool.source === "pin") return messages.aPin;
  if (tool.source.startsWith("mcp:")) return messages.mcpServer(tool.source.slice(4));
  if (tool.source === "agent") return messages.anotherAgent;
  return tool.source === "documents" ? messages.documents : messages.configuration;
}

/** The reason why the switch is fixed; empty if it is not. */
function fixedReason(tool: ToolInfo, role: string, gated: boolean): string {
  if (tool.always_asks) return messages.itAlwaysNeedsApproval(tool.always_asks);
  if (role === "viewer") return messages.viewersCannotChangeSettings;
  return gated && !tool.may_switch_off ? messages.NOT_ALLOWED : "";
}
