import { Tabs, Text } from "@mantine/core";
import { useRef } from "react";
import { useSearchParams } from "wouter";
import { CopyButton } from "../../components/CopyButton";
import css from "./Connect.module.css";
import * as messages from "./messages";
import { highlight, isInsecure, renderSnippet, SNIPPETS, type Snippet } from "./snippets";

interface Props {
  agent: string;
  /** Of the agent; empty before it is created. */
  secret: string;
}

/** One tab for each kind of agent; which one is open is in the URL. */
export function SnippetTabs({ agent, secret }: Props) {
  const [params, setParams] = useSearchParams();
  const chosen = SNIPPETS.find(({ id }) => id === params.get("with")) ?? SNIPPETS[0];
  return (
    <Tabs
      value={chosen?.id ?? null}
      onChange={(id) =>
        setParams(
          (before) => {
            const after = new URLSearchParams(before);
            after.set("with", id ?? "");
            return after;
          },
          { replace: true },
        )
      }
      keepMounted={false}
    >
      <Tabs.List aria-label={messages.kindOfAgent} className={css.tabs}>
        {SNIPPETS.map(({ id, name }) => (
          <Tabs.Tab key={id} value={id}>
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {SNIPPETS.map((snippet) => (
        <Tabs.Panel key={snippet.id} value={snippet.id} pt="sm">
          <SnippetBox snippet={snippet} agent={agent} secret={secret} />
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

function SnippetBox({ snippet, agent, secret }: { snippet: Snippet } & Props) {
  const code = useRef<HTMLElement>(null);
  const server = location.origin;
  const text = renderSnippet(snippet, { server, agent, key: secret });
  return (
    <>
      {isInsecure(server) && (
        <Text size="sm" role="note" className={css.warning}>
          {snippet.insecure ? messages.addressIsNotEncrypted : messages.addressIsRefused}
        </Text>
      )}
      <div className={css.box} data-snippet={snippet.id}>
        {snippet.install && <InstallLine command={snippet.install} />}
        <div className={css.file}>
          <Text size="sm" fw={600} component="span">
            {snippet.file}
          </Text>
          <CopyButton
            text={text}
            shown={() => code.current}
            label={secret ? messages.copyWithKey : messages.copy}
            variant="default"
            size="xs"
          />
        </div>
        <pre className={css.code} role="region" aria-label={`${snippet.name}: ${snippet.file}`}>
          <code ref={code}>
            {highlight(text, secret).map((part, index) =>
              part.kind ? (
                <span key={index} data-token={part.kind}>
                  {part.text}
                </span>
              ) : (
                part.text
              ),
            )}
          </code>
        </pre>
      </div>
      {snippet.note && (
        <Text size="sm" c="dimmed" mt="xs">
          {snippet.note}
        </Text>
      )}
    </>
  );
}

function InstallLine({ command }: { command: string }) {
  const line = useRef<HTMLElement>(null);
  return (
    <div className={css.install}>
      <span>
        <Text size="sm" c="dimmed" component="span">
          {messages.inACheckout}
        </Text>{" "}
        <code ref={line}>{command}</code>
      </span>
      <CopyButton text={command} shown={() => line.current} variant="default" size="xs" />
    </div>
  );
}
