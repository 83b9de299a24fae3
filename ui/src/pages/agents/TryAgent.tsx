import { Anchor, Button, Group, Paper, Text, Title } from "@mantine/core";
import { useEffect, useMemo, useRef } from "react";
import { Link, useSearchParams } from "wouter";
import { Announcer } from "../chat/Announcer";
import { Composer } from "../chat/Composer";
import { useThreadReader } from "../chat/threadReader";
import { Transcript } from "../chat/Transcript";
import { buildTranscript, openCards } from "../chat/transcriptItems";
import { useSendMessage } from "../chat/useSendMessage";
import css from "./Agents.module.css";
import * as messages from "./detailMessages";
import { useModelProblem } from "./ModelField";
import type { AgentInfo } from "./queries";

/** A small conversation with the agent as it is saved; its thread is in the URL. */
export default function TryAgent({ agent, onClose }: { agent: AgentInfo; onClose: () => void }) {
  const [params, setParams] = useSearchParams();
  const value = params.get("try") ?? "";
  const thread = value.startsWith("thread-") ? value : undefined;
  const openThread = (id: string) =>
    setParams((before) => {
      const after = new URLSearchParams(before);
      after.set("try", id);
      return after;
    });
  const [reader, snapshot] = useThreadReader(thread);
  const sender = useSendMessage(thread, agent.name, (accepted, text) => {
    if (thread) reader?.addSent(accepted.line, text);
    else openThread(accepted.thread);
  });
  const entries = snapshot?.state.entries;
  const items = useMemo(() => (entries ? buildTranscript(entries) : []), [entries]);
  const problem = useModelProblem(agent.model);
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    box.current?.scrollIntoView({ block: "nearest" }); // newer browsers return a promise
  }, []);
  return (
    <Paper withBorder p="md" component="section" ref={box} aria-labelledby="try-it" className={css.try}>
      <Group justify="space-between" gap="xs">
        <Title order={2} size="h4" id="try-it">
          {messages.tryIt}
        </Title>
        <Group gap="xs">
          {thread && (
            <>
              <Anchor component={Link} href={`/chat/${thread}`} size="sm">
                {messages.openInChat}
              </Anchor>
              <Button size="xs" variant="default" onClick={() => openThread("new")}>
                {messages.startOver}
              </Button>
            </>
          )}
          <Button size="xs" variant="default" onClick={onClose}>
            {messages.close}
          </Button>
        </Group>
      </Group>
      <Text size="sm" c="dimmed">
        {messages.conversationIsReal(agent.name)}
      </Text>
      {problem && (
        <Text size="sm" role="alert">
          {messages.cannotAnswerYet(agent.name, problem)}
        </Text>
      )}
      {reader && snapshot && (
        <div className={css.tryTranscript}>
          <Transcript
            key={reader.id}
            reader={reader}
            snapshot={snapshot}
            items={items}
            onSend={sender.send}
          />
        </div>
      )}
      {!problem && (
        <Composer
          thread={thread ?? `try-${agent.name}`}
          sender={sender}
          openApprovals={openCards(items)}
          workingReader={(snapshot?.state.status ?? "idle") !== "idle" ? reader : null}
        />
      )}
      {snapshot && <Announcer items={items} status={snapshot.state.status} />}
    </Paper>
  );
}
