import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { linkHeaders, setLinkCounts } from "../live/approvalLink";
import { useLiveState } from "../live/live";
import { buildUrl, sendRequest, type RequestOptions, type Schemas } from "./client";
import { parseJson } from "./json";

export type ApprovalJson = Schemas["ApprovalJson"];
export type ApprovalItem = Schemas["ApprovalItemJson"];
export type Finding = Schemas["FindingJson"];
export type Argument = Schemas["CardFieldJson"];
export type DecisionKind = "approve" | "edit" | "respond" | "reject";
export type ApprovalStatus = ApprovalItem["status"];

/**
 * `read_at` is this browser's steady clock when the answer came: time left is counted from there, whatever its date.
 * `server_at` is what the server's clock said then, where it is known.
 */
export type ApprovalSnapshot = ApprovalJson & { read_at: number; server_at?: number };

const BLOCKED = 4_000; // how often to look where live events do not come through

export const approvalKey = (id: string) => ["approval", id] as const;

export async function readApproval(id: string, signal?: AbortSignal): Promise<ApprovalSnapshot> {
  return fetched("get", buildUrl("/api/approvals/{approval_id}", { approval_id: id }), { signal });
}

/** One approval, kept up to date by the live connection; by looking again where there is none. */
export function useApproval(id: string, initial?: ApprovalSnapshot) {
  const live = useLiveState();
  return useQuery({
    queryKey: approvalKey(id),
    queryFn: ({ signal }) => readApproval(id, signal),
    initialData: initial,
    refetchInterval: live === "live" ? false : BLOCKED,
  });
}

/** Everything a person can do to one approval answers with how it stands then. */
export function useApprovalAction(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ verb, body, once }: { verb: ApprovalAction; body: unknown; once: string }) => {
      const url = buildUrl(`/api/approvals/{approval_id}/${verb}`, { approval_id: id });
      return fetched("post", url, {
        body,
        once,
        headers: verb === "decision" ? linkHeaders(id) : undefined,
      });
    },
    onMutate: () => queries.cancelQueries({ queryKey: approvalKey(id) }), // it would come later, and be older
    onSuccess: (shown, { verb }) => {
      if (verb === "decision") setLinkCounts(false); // it is spent
      queries.setQueryData(approvalKey(id), shown);
    },
    onError: () => queries.invalidateQueries({ queryKey: approvalKey(id) }),
  });
}

export type ApprovalAction =
  "decision" | "undo" | "claim" | "release" | "delegate" | "comment" | "ask" | "resolve-unknown";

async function fetched(
  method: string,
  url: string,
  given: RequestOptions<unknown>,
): Promise<ApprovalSnapshot> {
  const answer = await sendRequest(method, url, given);
  const shown = parseJson(await answer.text()) as ApprovalJson;
  const told = Date.parse(answer.headers.get("date") ?? "");
  // the header has whole seconds only
  return { ...shown, read_at: performance.now(), server_at: Number.isNaN(told) ? undefined : told + 500 };
}
