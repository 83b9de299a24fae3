import { useQuery } from "@tanstack/react-query";
import { buildUrl, callApi, sendRequest, type Schemas } from "../../api/client";
import { parseJson } from "../../api/json";
import * as messages from "./messages";

export type PersonInfo = Schemas["Person"];
export type KeyInfo = Schemas["KeyInfo"];
export type GrantInfo = Schemas["GrantInfo"];
export type UserRole = Schemas["NewUserBody"]["role"];

export function useUsers() {
  return useQuery({ queryKey: ["users"], queryFn: ({ signal }) => callApi("get", "/api/users", { signal }) });
}

/** Neither revoked nor expired. */
export function isActiveKey(key: KeyInfo, now = Date.now()): boolean {
  return key.revoked_at === null && (key.expires_at === null || Date.parse(key.expires_at) > now);
}

/** The binding and quotas of an agent key, or the user that another key acts as. */
export function describeKeyBinding(key: KeyInfo): string {
  if (key.role !== "agent") return key.user && key.user !== key.name ? messages.actsAs(key.user) : "";
  const agents = key.agents.length ? messages.boundToAgents(key.agents.join(", ")) : messages.notBoundToAgent;
  const tools = key.tools.length ? messages.toolNames(key.tools.join(", ")) : "";
  const requesters: Record<string, string> = { any: messages.forAnyRequester, none: messages.forNobody };
  const requester = key.requester ? (requesters[key.requester] ?? messages.requesterName(key.requester)) : "";
  const limit = (count: number | null) => (count ? count.toLocaleString("en") : messages.anyNumberOf);
  const perMinute = key.per_minute === null ? "" : messages.callsPerMinute(limit(key.per_minute));
  const pending = key.pending === null ? "" : messages.pendingCalls(limit(key.pending));
  return [agents, tools, requester, perMinute, pending].filter(Boolean).join("; ");
}

/** What ends when a person is removed, in lines. */
export function describeRemoval(ended: Schemas["RemovalEffectsJson"]): string[] {
  const named = (found: Schemas["NamedItem"][]) => found.map(({ id, name }) => name || id).join(", ");
  const lines: [string, string][] = [
    [messages.grants, named(ended.grants)],
    [messages.keys, named(ended.keys)],
    [messages.votesInPendingApprovals, ended.votes.length ? String(ended.votes.length) : ""],
    [
      messages.delegationsInPendingApprovals,
      ended.delegations.length ? String(ended.delegations.length) : "",
    ],
    [messages.delegateOf, ended.away.join(", ")],
    [messages.sessions, ended.sessions ? String(ended.sessions) : ""],
    [messages.signInLinks, ended.links ? String(ended.links) : ""],
    [messages.linkedAccounts, ended.identities ? String(ended.identities) : ""],
  ];
  return lines.filter(([, found]) => found).map(([what, found]) => `${what}: ${found}`);
}

/** A person with the ETag that a change has to send. */
export interface TaggedPerson {
  person: PersonInfo;
  tag: string;
}

export async function readPerson(name: string, signal?: AbortSignal): Promise<TaggedPerson> {
  const answer = await sendRequest("get", buildUrl("/api/users/{name}", { name }), { signal });
  return { person: parseJson(await answer.text()) as PersonInfo, tag: answer.headers.get("etag") ?? "" };
}

/** "finance, leads" */
export function splitNames(text: string): string[] {
  return [...new Set(text.split(",").map((name) => name.trim()))].filter(Boolean);
}

export function listTeams(people: PersonInfo[]): string[] {
  return [...new Set(people.flatMap((person) => person.teams))].sort((a, b) => a.localeCompare(b));
}

export function isAway(person: PersonInfo): boolean {
  return person.away !== null && Date.parse(person.away.until) > Date.now();
}

/** A date in local time, for a datetime-local input. */
export function toLocalInput(at: Date): string {
  const shifted = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}

/** The URL with this page's origin if the server only knows a local address. */
export function reachableUrl(url: string, origin = location.origin): string {
  const parsed = new URL(url);
  const isLocal = /^(localhost|127\.|0\.0\.0\.0$|\[::1?\]$)/.test(parsed.hostname) || parsed.port === "0";
  return isLocal ? `${origin}${parsed.pathname}${parsed.search}${parsed.hash}` : url;
}
