import { Button, Group, List, Stack, Text, Title } from "@mantine/core";
import { useEffect, useId, useRef, useState } from "react";
import { Problem } from "../../components/States";
import css from "./Agents.module.css";
import { planOf, usePinAll, type ListedTool } from "./pins";

/** All tools of an agent in one step; each effect is shown before, and what is left out with its reason. */
export function PinAll({ agent, tools }: { agent: string; tools: ListedTool[] }) {
  const [open, setOpen] = useState(false);
  const pinAll = usePinAll(agent);
  if (planOf(tools).pinned.length === 0) return null;
  if (!open)
    return (
      <Button variant="default" w="fit-content" onClick={() => setOpen(true)}>
        Pin all of this agent
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
  const { pinned, leftOut, shown } = planOf(tools);
  useEffect(() => head.current?.focus(), []);
  return (
    <section className={css.panel} aria-labelledby={title}>
      <Stack gap="sm">
        <Title order={3} size="h5" id={title} ref={head} tabIndex={-1}>
          Pin {pinned.length === 1 ? "1 tool" : `${pinned.length} tools`} as declared?
        </Title>
        <List size="sm">
          {pinned.map((tool) => (
            <List.Item key={tool.name}>
              <Text component="span" size="sm" ff="monospace">
                {tool.name}
              </Text>
              : {tool.effect}
              {tool.idempotent && ", idempotent"}
              {tool.secret.length > 0 && `, secret: ${tool.secret.join(", ")}`}
            </List.Item>
          ))}
        </List>
        {leftOut.length > 0 && (
          <>
            <Text size="sm" fw={600}>
              Left out, to be pinned one by one:
            </Text>
            <List size="sm">
              {leftOut.map(({ name, why }) => (
                <List.Item key={name}>
                  {name}: {why}
                </List.Item>
              ))}
            </List>
          </>
        )}
        {error && <Problem error={error} />}
        <Group>
          <Button loading={sending} onClick={() => onPin(shown)}>
            Pin {pinned.length === 1 ? "1 tool" : `${pinned.length} tools`}
          </Button>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
        </Group>
      </Stack>
    </section>
  );
}
