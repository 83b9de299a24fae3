import { Button, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { useSearchParams } from "wouter";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import css from "./Agents.module.css";
import * as messages from "./detailMessages";
import { useTools, type AgentInfo } from "./queries";
import { ToolRow } from "./ToolRow";

/** The agent's tools in pages, searched on the server; search and selection are in the URL. */
export function ToolList({ agent, role }: { agent: AgentInfo; role: string }) {
  const { q, all, search, choose } = useFilter();
  const tools = useTools({ agent: agent.name, q, offered: all ? undefined : true });
  const items = tools.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack gap="sm">
      <div className={css.search}>
        <TextInput
          label={messages.searchTools}
          type="search"
          defaultValue={q}
          onChange={(event) => search(event.currentTarget.value)}
        />
        <NativeSelect
          label={messages.show}
          value={all ? "all" : "own"}
          onChange={(event) => choose(event.currentTarget.value)}
          data={[
            {
              value: "own",
              label: agent.source === "calls" ? messages.toolsItHasCalled : messages.thisAgentsTools,
            },
            { value: "all", label: messages.allKnownTools },
          ]}
        />
      </div>
      {tools.isPending && <Loading label={messages.loadingTools} />}
      {tools.error && <ErrorMessage error={tools.error} onRetry={() => void tools.refetch()} />}
      {tools.data && items.length === 0 && (
        <EmptyState title={messages.noTools}>
          {q ? messages.noToolNameMatches : messages.thisAgentHasNoTools}
        </EmptyState>
      )}
      <ul className={css.plain} aria-label={messages.tools}>
        {items.map((tool) => (
          <ToolRow key={tool.name} agent={agent} tool={tool} role={role} />
        ))}
      </ul>
      {tools.hasNextPage && (
        <Button
          variant="default"
          loading={tools.isFetchingNextPage}
          onClick={() => void tools.fetchNextPage()}
        >
          {messages.showMoreTools}
        </Button>
      )}
      <Text size="sm" c="dimmed" role="status">
        {tools.data && items.length > 0 && countLabel(items.length, tools.hasNextPage)}
      </Text>
    </Stack>
  );
}

function countLabel(count: number, more: boolean): string {
  const tools = messages.toolCount(count);
  return more ? messages.shownThereAreMore(tools) : `${tools}.`;
}

function useFilter() {
  const [params, setParams] = useSearchParams();
  const [typed, setTyped] = useState(params.get("q") ?? "");
  const [q] = useDebouncedValue(typed, 250);
  useEffect(() => {
    setParams((before) => withParam(before, "q", q), { replace: true });
  }, [q, setParams]);
  const choose = (value: string) =>
    setParams((before) => withParam(before, "show", value === "all" ? "all" : ""));
  return { q, all: params.get("show") === "all", search: setTyped, choose };
}

function withParam(before: URLSearchParams, name: string, value: string): URLSearchParams {
  const after = new URLSearchParams(before);
  if (value) after.set(name, value);
  else after.delete(name);
  return after;
}
