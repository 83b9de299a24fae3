import { Badge, Button, Code, Group, NativeSelect, Paper, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";
import { write } from "../../api/json";
import { Loading, Problem } from "../../components/States";
import { Ago } from "../../components/Time";
import css from "./Agents.module.css";
import { PinAll } from "./PinAll";
import {
  alikeWords,
  callsWords,
  MOST,
  onWordWords,
  useListedTools,
  usePin,
  useUnpin,
  type Effect,
  type ListedTool,
} from "./pins";

const EFFECTS: Effect[] = ["read", "write", "destructive"];

/** For admins: the tools that only agents declared, of one of them or of all, and the pins. */
export function Declared({ agent = "" }: { agent?: string }) {
  const tools = useListedTools(agent);
  const items = tools.data?.items.filter((tool) => tool.standing !== "registered") ?? [];
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="declared">
      <Stack gap="sm">
        <Title order={2} size="h4" id="declared">
          Declared by agents
        </Title>
        {tools.isPending && <Loading what="Loading tools" />}
        {tools.error && <Problem error={tools.error} again={() => void tools.refetch()} />}
        {tools.data && (
          <Text size="sm">
            {items.length > 0 ? onWordWords(tools.data) : "No agent has declared a tool of its own yet."}
          </Text>
        )}
        {agent && items.length > 0 && <PinAll agent={agent} tools={items} />}
        <ul className={css.plain} aria-label="Tools that agents declared">
          {items.map((tool) => (
            <Row key={`${tool.name} ${tool.declared_sha256}`} agent={agent} tool={tool} />
          ))}
        </ul>
        {tools.data?.next && <Text size="sm">The first {MOST} tools are shown.</Text>}
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
            {tool.effect || "effect unknown"}
          </Badge>
        </div>
        <Text size="sm" c="dimmed">
          {callsWords(tool)}
          {tool.last_seen_at && (
            <>
              , last <Ago at={tool.last_seen_at} />
            </>
          )}
        </Text>
        {changed && (
          <Text size="sm" className={css.warned}>
            An agent declares it otherwise by now: {tool.changed.join(", ")}. Such calls ask.
          </Text>
        )}
        {tool.looks_like.length > 0 && (
          <Text size="sm" className={css.warned}>
            Look twice: {alikeWords(tool)}.
          </Text>
        )}
        {tool.named_by && tool.standing === "declared" && (
          <Text size="sm">What it is said to do does not count: {tool.named_by}.</Text>
        )}
      </div>
      <div className={css.switch}>
        {tool.standing === "pinned" && !changed ? <Unpin tool={tool} /> : <Pin agent={agent} tool={tool} />}
      </div>
      <details className={css.more}>
        <summary>
          <Text component="span" size="sm">
            Definition
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
          aria-label={`Effect of ${tool.name}`}
          value={effect}
          onChange={(event) => setEffect(event.currentTarget.value)}
          data={[{ value: "", label: "effect?", disabled: true }, ...EFFECTS]}
        />
        <Button
          aria-label={`Pin ${tool.name}`}
          disabled={!effect}
          loading={pin.isPending}
          onClick={() => pin.mutate({ tool, effect: effect as Effect })}
        >
          {tool.pinned_by ? "Pin again" : "Pin"}
        </Button>
      </Group>
      {pin.error && <Problem error={pin.error} />}
    </Stack>
  );
}

function Unpin({ tool }: { tool: ListedTool }) {
  const unpin = useUnpin();
  return (
    <Stack gap={4}>
      <Button
        variant="default"
        aria-label={`Unpin ${tool.name}`}
        loading={unpin.isPending}
        onClick={() => unpin.mutate(tool.name)}
      >
        Unpin
      </Button>
      {unpin.error && <Problem error={unpin.error} />}
    </Stack>
  );
}

function Definition({ tool }: { tool: ListedTool }) {
  const secret = tool.secret.length ? `Secret: ${tool.secret.join(", ")}. ` : "";
  return (
    <>
      <Text size="sm" c="dimmed">
        {secret}
        {tool.idempotent && "Idempotent. "}
        {tool.pinned_by && tool.pinned_at && (
          <>
            Pinned by {tool.pinned_by}, <Ago at={tool.pinned_at} />.{" "}
          </>
        )}
        {tool.schema ? "" : "It has no schema."}
      </Text>
      {tool.schema && (
        <Code block className={css.schema} tabIndex={0} role="region" aria-label={`Schema of ${tool.name}`}>
          {write(tool.schema, 2)}
        </Code>
      )}
    </>
  );
}
