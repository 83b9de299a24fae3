import { Badge, Button, Code, Group, List, NativeSelect, Paper, Stack, Text, Title } from "@mantine/core";
import { useEffect, useId, useRef, useState } from "react";
import { stringifyJson } from "../../api/json";
import { ErrorMessage, Loading } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import css from "./Agents.module.css";
import * as messages from "./declaredMessages";
import {
  describeCalls,
  describeLookalikes,
  describeTrust,
  makePinPlan,
  MAX_LISTED_TOOLS,
  useListedTools,
  usePin,
  usePinAll,
  useUnpin,
  type ListedTool,
  type ToolEffect,
} from "./pins";

const EFFECTS: ToolEffect[] = ["read", "write", "destructive"];

/** For admins: tools declared by one or all agents, and their pins. */
export function DeclaredTools({ agent = "" }: { agent?: string }) {
  const tools = useListedTools(agent);
  const items = tools.data?.items.filter((tool) => tool.standing !== "registered") ?? [];
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="declared">
      <Stack gap="sm">
        <Title order={2} size="h4" id="declared">
          {messages.declaredByAgents}
        </Title>
        {tools.isPending && <Loading label={messages.loadingTools} />}
        {tools.error && <ErrorMessage error={tools.error} onRetry={() => void tools.refetch()} />}
        {tools.data && (
          <Text size="sm">
            {items.length > 0 ? describeTrust(tools.data) : messages.noAgentHasDeclaredATool}
          </Text>
        )}
        {agent && items.length > 0 && <PinAll agent={agent} tools={items} />}
        <ul className={css.plain} aria-label={messages.toolsDeclaredByAgents}>
          {items.map((tool) => (
            <Row key={`${tool.name} ${tool.declared_sha256}`} agent={agent} tool={tool} />
          ))}
        </ul>
        {tools.data?.next && <Text size="sm">{messages.firstToolsAreShown(MAX_LISTED_TOOLS)}</Text>}
      </Stack>
    </Paper>
  );
}

function Row({ agent, tool }: { agent: string; tool: ListedTool }) {
  const changed = tool.changed.length > 0;
  return (
    <li className={css.tool} data-declared={tool.name}>
      <div>
        <div className={css.name}>
          <Text component="span" ff="monospace" fw={600}>
            {tool.name}
          </Text>
          <Badge variant="default" size="sm">
            {tool.standing}
          </Badge>
          <Badge variant="default" size="sm">
            {tool.effect || messages.effectUnknown}
          </Badge>
        </div>
        <Text size="sm" c="dimmed">
          {describeCalls(tool)}
          {tool.last_seen_at && (
            <>
              {messages.last} <TimeAgo at={tool.last_seen_at} />
            </>
          )}
        </Text>
        {changed && (
          <Text size="sm" className={css.warned}>
            {messages.declaredDifferently(tool.changed.join(", "))}
          </Text>
        )}
        {tool.looks_like.length > 0 && (
          <Text size="sm" className={css.warned}>
            {messages.checkName(describeLookalikes(tool))}
          </Text>
        )}
        {tool.named_by && tool.standing === "declared" && (
          <Text size="sm">{messages.itsDeclaredEffectIsIgnored(tool.named_by)}</Text>
        )}
      </div>
      <div className={css.switch}>
        {tool.standing === "pinned" && !changed ? <Unpin tool={tool} /> : <Pin agent={agent} tool={tool} />}
      </div>
      <details className={css.more}>
        <summary>
          <Text component="span" size="sm">
            {messages.definition}
          </Text>
        </summary>
        <Definition tool={tool} />
      </details>
    </li>
  );
}

function Pin({ agent, tool }: { agent: string; tool: ListedTool }) {
  const [effect, setEffect] = useState<string>(tool.effect);
  const pin = usePin(agent);
  return (
    <Stack gap={4}>
      <Group gap="xs" wrap="nowrap">
        <NativeSelect
          aria-label={messages.effectOf(tool.name)}
          value={effect}
          onChange={(event) => setEffect(event.currentTarget.value)}
          data={[{ value: "", label: messages.effect, disabled: true }, ...EFFECTS]}
        />
        <Button
          aria-label={messages.pinTool(tool.name)}
          disabled={!effect}
          loading={pin.isPending}
          onClick={() => pin.mutate({ tool, effect: effect as ToolEffect })}
        >
          {tool.pinned_by ? messages.pinAgain : messages.pin}
        </Button>
      </Group>
      {pin.error && <ErrorMessage error={pin.error} />}
    </Stack>
  );
}

function Unpin({ tool }: { tool: ListedTool }) {
  const unpin = useUnpin();
  return (
    <Stack gap={4}>
      <Button
        variant="default"
        aria-label={messages.unpinTool(tool.name)}
        loading={unpin.isPending}
        onClick={() => unpin.mutate(tool.name)}
      >
        {messages.unpin}
      </Button>
      {unpin.error && <ErrorMessage error={unpin.error} />}
    </Stack>
  );
}

function Definition({ tool }: { tool: ListedTool }) {
  const secret = tool.secret.length ? messages.secretArguments(tool.secret.join(", ")) : "";
  return (
    <>
      <Text size="sm" c="dimmed">
        {secret}
        {tool.idempotent && messages.idempotent}
        {tool.pinned_by && tool.pinned_at && (
          <>
            {messages.pinnedBy(tool.pinned_by)} <TimeAgo at={tool.pinned_at} />.{" "}
          </>
        )}
        {tool.schema ? "" : messages.noSchema}
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

/** Pins all tools of an agent in one step, after a preview of their effects and of the tools left out. */
function PinAll({ agent, tools }: { agent: string; tools: ListedTool[] }) {
  const [open, setOpen] = useState(false);
  const pinAll = usePinAll(agent);
  if (makePinPlan(tools).pinned.length === 0) return null;
  if (!open)
    return (
      <Button variant="default" w="fit-content" onClick={() => setOpen(true)}>
        {messages.pinAllToolsOfThisAgent}
      </Button>
    );
  return (
    <Preview
      tools={tools}
      error={pinAll.error}
      sending={pinAll.isPending}
      onClose={() => setOpen(false)}
      onPin={(shown) => pinAll.mutate(shown, { onSuccess: () => setOpen(false) })}
    />
  );
}

interface PreviewProps {
  tools: ListedTool[];
  error: Error | null;
  sending: boolean;
  onClose: () => void;
  onPin: (shown: Record<string, string>) => void;
}

function Preview({ tools, error, sending, onClose, onPin }: PreviewProps) {
  const title = useId();
  const head = useRef<HTMLHeadingElement>(null);
  const { pinned, leftOut, shown } = makePinPlan(tools);
  useEffect(() => head.current?.focus(), []);
  return (
    <section className={css.panel} aria-labelledby={title}>
      <Stack gap="sm">
        <Title order={3} size="h5" id={title} ref={head} tabIndex={-1}>
          {messages.pinToolsQuestion(pinned.length)}
        </Title>
        <List size="sm">
          {pinned.map((tool) => (
            <List.Item key={tool.name}>
              <Text component="span" size="sm" ff="monospace">
                {tool.name}
              </Text>
              : {tool.effect}
              {tool.idempotent && messages.idempotentSuffix}
              {tool.secret.length > 0 && messages.secretSuffix(tool.secret.join(", "))}
            </List.Item>
          ))}
        </List>
        {leftOut.length > 0 && (
          <>
            <Text size="sm" fw={600}>
              {messages.notIncludedPinOneByOne}
            </Text>
            <List size="sm">
              {leftOut.map(({ name, reason }) => (
                <List.Item key={name}>
                  {name}: {reason}
                </List.Item>
              ))}
            </List>
          </>
        )}
        {error && <ErrorMessage error={error} />}
        <Group>
          <Button loading={sending} onClick={() => onPin(shown)}>
            {messages.pinTools(pinned.length)}
          </Button>
          <Button variant="default" onClick={onClose}>
            {messages.cancel}
          </Button>
        </Group>
      </Stack>
    </section>
  );
}
