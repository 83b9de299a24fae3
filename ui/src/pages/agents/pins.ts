import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { callApi, type Schemas } from "../../api/client";
import { live } from "../../live/live";
import * as messages from "./declaredMessages";

export type ListedTool = Schemas["ToolTrustInfo"];
export type ListedTools = Schemas["ToolTrustList"];
export type ToolEffect = "read" | "write" | "destructive";

export const MAX_LISTED_TOOLS = 500; // tools in one list

export function useListedTools(agent: string) {
  const queries = useQueryClient();
  useEffect(
    () =>
      live.subscribe(({ kind }) => {
        if (/^(policy|agent|tool)_/.test(kind)) void queries.invalidateQueries({ queryKey: ["pins"] });
      }),
    [queries],
  );
  return useQuery({
    queryKey: ["pins", agent],
    queryFn: ({ signal }) =>
      callApi("get", "/api/pins", { query: { agent, limit: MAX_LISTED_TOOLS }, signal }),
  });
}

/** Reloads the tools after a change, successful or not. */
function useToolMutation<V, A>(mutationFn: (variables: V) => Promise<A>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn,
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ["pins"] });
      void queries.invalidateQueries({ queryKey: ["tools"] });
    },
  });
}

export const usePin = (agent: string) =>
  useToolMutation(({ tool, effect }: { tool: ListedTool; effect: ToolEffect }) =>
    callApi("post", "/api/pins", {
      body: { tool: tool.name, agent, effect, spec_sha256: tool.declared_sha256 ?? "" },
    }),
  );

export const useUnpin = () =>
  useToolMutation((tool: string) => callApi("delete", "/api/pins/{tool}", { path: { tool } }));

export const usePinAll = (agent: string) =>
  useToolMutation((shown: Record<string, string>) =>
    callApi("post", "/api/pins/all", { body: { agent, shown } }),
  );

interface PinPlan {
  pinned: ListedTool[];
  leftOut: { name: string; reason: string }[];
  /** The digests of the displayed tools: nothing else is pinned. */
  shown: Record<string, string>;
}

/** The effect of "pin all", as the server decides it: tools that a rule names are pinned one by one. */
export function makePinPlan(tools: ListedTool[]): PinPlan {
  const declared = tools.filter((tool) => tool.standing === "declared");
  const reason = (tool: ListedTool) =>
    tool.named_by || describeLookalikes(tool) || (tool.effect ? "" : messages.itsEffectIsNotDeclared);
  const pinned = declared.filter((tool) => !reason(tool));
  const leftOut = declared.filter(reason).map((tool) => ({ name: tool.name, reason: reason(tool) }));
  return {
    pinned,
    leftOut,
    shown: Object.fromEntries(pinned.map((tool) => [tool.name, tool.declared_sha256 ?? ""])),
  };
}

export function describeTrust(list: ListedTools): string {
  return [trustSentence(list), ...list.bounds].join(" ");
}

function trustSentence({ on_word, trust_declared }: ListedTools): string {
  if (!trust_declared) return messages.declaredEffectsAreNotTrusted;
  if (on_word === 0) return messages.noToolIsTrusted;
  const [tools, them] =
    on_word === 1 ? [messages.oneToolIsTrusted, "it"] : [messages.toolsAreTrusted(on_word), "them"];
  return messages.onlyAgentsStateThis(tools, them);
}

/** With non-ASCII characters as code points, so that similar names differ. */
const spellOut = (name: string): string =>
  name.replace(/[^ -~]/gu, (letter) => `\\u{${letter.codePointAt(0)!.toString(16)}}`);

/** Empty if no other tool has a similar name. */
export const describeLookalikes = ({ name, looks_like }: ListedTool): string =>
  looks_like.length ? messages.itsNameLooksLike(spellOut(name), looks_like.map(spellOut).join(", ")) : "";

export function describeCalls(tool: ListedTool): string {
  const calls = messages.callCount(tool.calls);
  const agents = tool.agents.length ? messages.declaredBySuffix(tool.agents.join(", ")) : "";
  return messages.in30Days(calls, agents);
}
