import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { callApi, sendRequest, type Schemas } from "../../api/client";

export type PolicyCheck = Schemas["PolicyCheckResult"];
export type RuleInfo = Schemas["RuleInfo"];
export type RuleChange = Schemas["RuleChange"];
export type PolicyDiff = Schemas["PolicyDiff"];
export type RuleActivity = Schemas["RuleActivityJson"];
export type PolicyVersion = Schemas["PolicyVersionJson"];
export type Verdict = RuleInfo["then"];

/** A policy with its comments; version 0 means none. */
export interface StoredPolicy {
  text: string;
  version: number;
}

/** Pause in typing after which the server checks the text. */
export const TYPING_PAUSE = 400;
const YAML = "application/yaml";

export function usePolicyInForce() {
  return useQuery({ queryKey: ["policy"], queryFn: ({ signal }) => readPolicy(undefined, signal) });
}

/** A version never changes, so it is loaded once. */
export function usePolicyVersion(version: number) {
  return useQuery({
    queryKey: ["policy_version", version],
    queryFn: ({ signal }) => readPolicy(version, signal),
    enabled: version > 0,
    staleTime: Infinity,
  });
}

async function readPolicy(version: number | undefined, signal: AbortSignal): Promise<StoredPolicy> {
  const url = version ? `/api/policy?version=${version}` : "/api/policy";
  const response = await sendRequest("get", url, { headers: { accept: YAML }, signal });
  return {
    text: await response.text(),
    version: Number((response.headers.get("etag") ?? "").replace(/\D/g, "")),
  };
}

export function checkPolicy(text: string, signal?: AbortSignal): Promise<PolicyCheck> {
  return callApi("post", "/api/policy/check", { raw: { text, contentType: YAML }, signal });
}

/** The server's check of a text; while typing, the previous result. */
export function usePolicyCheck(text: string) {
  return useQuery({
    queryKey: ["policy", "check", text],
    queryFn: ({ signal }) => checkPolicy(text, signal),
    placeholderData: keepPreviousData,
    gcTime: 60_000,
  });
}

export function useRuleActivity() {
  return useQuery({
    queryKey: ["policy", "activity"],
    queryFn: ({ signal }) => callApi("get", "/api/policy/activity", { signal }),
    staleTime: 60_000,
  });
}

export function usePolicyVersions() {
  return useQuery({
    queryKey: ["policy", "versions"],
    queryFn: ({ signal }) => callApi("get", "/api/policy/versions", { signal }),
  });
}

export function usePolicyTemplates() {
  return useQuery({
    queryKey: ["policy_templates"],
    queryFn: ({ signal }) => callApi("get", "/api/policy/templates", { signal }),
    staleTime: Infinity,
  });
}

/** Only if the version in force is still the draft's base. */
export function usePutPolicy(onPut: (now: Schemas["PutPolicyResult"]) => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ text, baseVersion, reason }: { text: string; baseVersion: number; reason: string }) =>
      callApi("put", "/api/policy", {
        query: { reason },
        raw: { text, contentType: YAML },
        headers: { "if-match": `"${baseVersion}"` },
      }),
    onSuccess: (now, { text }) => {
      queries.setQueryData<StoredPolicy>(["policy"], { text, version: now.version });
      onPut(now);
    },
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ["policy"] });
      return queries.invalidateQueries({ queryKey: ["policy"], exact: true });
    },
  });
}

export interface ExplainResult {
  /** The assumed caller, such as "as a call with an agent key that is bound to nobody: …". */
  judged_as: string;
  verdict: Verdict;
  rule: string;
  why: string;
  reason: string | null;
  terms: Record<string, unknown> | null;
  steps: ExplainStep[];
  notes: string[];
  policy: { origin: string };
}

export interface ExplainStep {
  rule: string;
  line: number | null;
  then: Verdict;
  shadow: boolean;
  matched: boolean;
  holds: boolean;
  why: string;
}

export interface ExplainRequest {
  call: Record<string, unknown>;
  /** Without it: the policy in force. */
  policy?: string;
}

export function useExplain() {
  return useMutation({
    mutationFn: async (body: ExplainRequest) =>
      (await callApi("post", "/api/policy/explain", { body } as never)) as unknown as ExplainResult,
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
  causes: RehearsalCause[];
  answers_per_day: { who: string; now: number; draft: number }[];
  changed: ChangedCall[];
}

interface RehearsalCause {
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
      (await callApi("post", "/api/policy/rehearse", {
        query: { since, limit },
        raw: { text, contentType: YAML },
      })) as unknown as Rehearsal,
  });
}
