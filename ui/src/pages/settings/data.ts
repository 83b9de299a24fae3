import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { address, call, Refused, send, type Shapes } from "../../api/client";
import { parse } from "../../api/json";

export type PersonInfo = Shapes["Person"];
export type KeyInfo = Shapes["KeyInfo"];
export type GrantInfo = Shapes["GrantInfo"];
export type Role = Shapes["NewUser"]["role"];

export function useUsers() {
  return useQuery({ queryKey: ["users"], queryFn: ({ signal }) => call("get", "/api/users", { signal }) });
}

/** Something is sent, and what it may have changed is read again. */
export function useSending<Given, Answer>(
  sending: (given: Given, once: string) => Promise<Answer>,
  changes: string[],
  then?: (answer: Answer) => void,
) {
  const queries = useQueryClient();
  const once = useRef(crypto.randomUUID());
  return useMutation({
    mutationFn: (given: Given) => sending(given, once.current),
    onSuccess: async (answer) => {
      once.current = crypto.randomUUID();
      then?.(answer);
      await Promise.all(changes.map((key) => queries.invalidateQueries({ queryKey: [key] })));
    },
    onError: (error) => {
      if (!(error instanceof Refused) || error.status) once.current = crypto.randomUUID(); // it was answered
    },
  });
}

/** Somebody as they are now, with the mark that a change of them has to carry. */
export interface Tagged {
  person: PersonInfo;
  tag: string;
}

export async function readPerson(name: string, signal?: AbortSignal): Promise<Tagged> {
  const answer = await send("get", address("/api/users/{name}", { name }), { signal });
  return { person: parse(await answer.text()) as PersonInfo, tag: answer.headers.get("etag") ?? "" };
}

/** What the server says about one field. */
export function problemAt(error: Error | null, pointer: string): string | undefined {
  return error instanceof Refused
    ? error.problems.find((problem) => problem.pointer === pointer)?.message
    : undefined;
}

/** "finance, leads" */
export function namesIn(text: string): string[] {
  return [...new Set(text.split(",").map((name) => name.trim()))].filter(Boolean);
}

export function teamsOf(people: PersonInfo[]): string[] {
  return [...new Set(people.flatMap((person) => person.teams))].sort((a, b) => a.localeCompare(b));
}

export function isAway(person: PersonInfo): boolean {
  return person.away !== null && Date.parse(person.away.until) > Date.now();
}

export function dateTime(at: string): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** What a field for a date and a time takes: the same moment by the clock on the wall. */
export function localInput(at: Date): string {
  const shifted = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}

/** A server that was told no public address names itself; where only it can go, the address of this page is better. */
export function reachable(url: string, origin = location.origin): string {
  const made = new URL(url);
  const near = /^(localhost|127\.|0\.0\.0\.0$|\[::1?\]$)/.test(made.hostname) || made.port === "0";
  return near ? `${origin}${made.pathname}${made.search}${made.hash}` : url;
}
