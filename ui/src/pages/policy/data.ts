import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { call, send, type Shapes } from "../../api/client";

export type Checked = Shapes["PolicyCheckResult"];
export type RuleInfo = Shapes["RuleInfo"];
export type RuleChange = Shapes["RuleChange"];
export type PolicyDiff = Shapes["PolicyDiff"];
export type Activity = Shapes["RuleActivityJson"];
export type Version = Shapes["PolicyVersionJson"];
export type Verdict = RuleInfo["then"];

/** A policy as it was put, comments included; version 0 is none at all. */
export interface Stored {
  text: string;
  version: number;
}

/** The server looks at a text when nobody has typed for so long. */
export const PAUSE = 400;
const YAML = "application/yaml";

export function useInForce() {
  return useQuery({ queryKey: ["policy"], queryFn: ({ signal }) => readPolicy(undefined, signal) });
}

/** A version never changes, so it is read once. */
export function useVersion(version: number) {
  return useQuery({
    queryKey: ["policy_version", version],
    queryFn: ({ signal }) => readPolicy(version, signal),
    enabled: version > 0,
    staleTime: Infinity,
  });
}

async function readPolicy(version: number | undefined, signal: AbortSignal): Promise<Stored> {
  const url = version ? `/api/policy?version=${version}` : "/api/policy";
  const answer = await send("get", url, { headers: { accept: YAML }, signal });
  return {
    text: await answer.text(),
    version: Number((answer.headers.get("etag") ?? "").replace(/\D/g, "")),
  };
}

export function checkPolicy(text: string, signal?: AbortSignal): Promise<Checked> {
  return call("post", "/api/policy/check", { raw: { text, kind: YAML }, signal });
}

/** What the server makes of a text; while somebody types, what it made of the last one. */
export function useChecked(text: string) {
  return useQuery({
    queryKey: ["policy", "check", text],
    queryFn: ({ signal }) => checkPolicy(text, signal),
    placeholderData: keepPreviousData,
    gcTime: 60_000,
  });
}

export function useActivity() {
  return useQuery({
    queryKey: ["policy", "activity"],
    queryFn: ({ signal }) => call("get", "/api/policy/activity", { signal }),
    staleTime: 60_000,
  });
}

export function useVersions() {
  return useQuery({
    queryKey: ["policy", "versions"],
    queryFn: ({ signal }) => call("get", "/api/policy/versions", { signal }),
  });
}

export function useTemplates() {
  return useQuery({
    queryKey: ["policy_templates"],
    queryFn: ({ signal }) => call("get", "/api/policy/templates", { signal }),
    staleTime: Infinity,
  });
}

/** Only if what is in force is still the version that it was made from. */
export function usePut(onPut: (now: Shapes["PutPolicyResult"]) => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ text, seen, reason }: { text: string; seen: number; reason: string }) =>
      call("put", "/api/policy", {
        query: { reason },
        raw: { text, kind: YAML },
        headers: { "if-match": `"${seen}"` },
      }),
    onSuccess: (now, { text }) => {
      queries.setQueryData<Stored>(["policy"], { text, version: now.version });
      onPut(now);
    },
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ["policy"] });
      return queries.invalidateQueries({ queryKey: ["policy"], exact: true });
    },
  });
}

export interface Explained {
  /** Whose call it was taken for, such as "as a call with an agent key that is bound to nobody: …". */
  judged_as: string;
  verdict: Verdict;
  rule: string;
  why: string;
  reason: string | null;
  terms: Record<string, unknown> | null;
  steps: Step[];
  notes: string[];
  policy: { origin: string };
}

export interface Step {
  rule: string;
  line: number | null;
  then: Verdict;
  shadow: boolean;
  matched: boolean;
  holds: boolean;
  why: string;
}

export interface Asked {
  call: Record<string, unknown>;
  /** Without one: what is in force. */
  policy?: string;
}

export function useExplain() {
  return useMutation({
    mutationFn: async (body: Asked) =>
      (await call("post", "/api/policy/explain", { body } as never)) as unknown as Explained,
  });
}

export interface Rehearsal {
  calls: number;
  first: string | null;
  last: string | null;
  verdicts: Record<Verdict, Record<Verdict, number>>;
  turned: number;
  other_terms: number;
  loosened: number;
  outdated: number;
  erased: number;
  /** How long the content of finished calls is kept: forever, or a duration. */
  retention: string;
  allowed_reads: number;
  left_out: number;
  causes: Cause[];
  answers_per_day: { who: string; now: number; draft: number }[];
  changed: ChangedCall[];
}

export interface Cause {
  calls: number;
  from: Verdict;
  to: Verdict;
  old_rule: string;
  new_rule: string;
  loosened: boolean;
}

export interface ChangedCall {
  approval_id: string | null;
  at: string;
  tool: string;
  agent: string;
  sentence: string;
  from: Verdict;
  to: Verdict;
  old_rule: string;
  new_rule: string;
  needs: string | null;
  loosened: boolean;
}

export function useRehearse() {
  return useMutation({
    mutationFn: async ({ text, since, limit }: { text: string; since: string; limit: number }) =>
      (await call("post", "/api/policy/rehearse", {
        query: { since, limit },
        raw: { text, kind: YAML },
      })) as unknown as Rehearsal,
  });
}
