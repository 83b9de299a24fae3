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
 * `read_at` is this browser's monotonic clock at the time of the response; time left is counted from it. `server_at`
 * is the server's clock at that time, if known.
 */
export type ApprovalSnapshot = ApprovalJson & { read_at: number; server_at?: number };

const POLL_INTERVAL = 4_000; // polling interval without live events

export const approvalKey = (id: string) => ["approval", id] as const;

export async function readApproval(id: string, signal?: AbortSignal): Promise<ApprovalSnapshot> {
  return fetchSnapshot("get", buildUrl("/api/approvals/{approval_id}", { approval_id: id }), { signal });
}

/** One approval, kept up to date by the live connection, or by polling without one. */
export function useApproval(id: string, initial?: ApprovalSnapshot) {
  const live = useLiveState();
  return useQuery({
    queryKey: approvalKey(id),
    queryFn: ({ signal }) => readApproval(id, signal),
    initialData: initial,
    refetchInterval: live === "live" ? false : POLL_INTERVAL,
  });
}

/** An action on an approval; its response is the new state. */
export function useApprovalAction(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({
      action,
      body,
      idempotencyKey,
    }: {
      action: ApprovalAction;
      body: unknown;
      idempotencyKey: string;
    }) => {
      const url = buildUrl(`/api/approvals/{approval_id}/${action}`, { approval_id: id });
      return fetchSnapshot("post", url, {
        body,
        idempotencyKey,
        headers: action === "decision" ? linkHeaders(id) : undefined,
      });
    },
    onMutate: () => queries.cancelQueries({ queryKey: approvalKey(id) }), // a running read would return older data later
    onSuccess: (approval, { action }) => {
      if (action === "decision") setLinkCounts(false); // the link is used up
      queries.setQueryData(approvalKey(id), approval);
    },
    onError: () => queries.invalidateQueries({ queryKey: approvalKey(id) }),
  });
}

export type ApprovalAction =
  "decision" | "undo" | "claim" | "release" | "delegate" | "comment" | "ask" | "resolve-unknown";

async function fetchSnapshot(
  method: string,
  url: string,
  options: RequestOptions<unknown>,
): Promise<ApprovalSnapshot> {
  const response = await sendRequest(method, url, options);
  const approval = parseJson(await response.text()) as ApprovalJson;
  const serverTime = Date.parse(response.headers.get("date") ?? "");
  // the header has whole seconds only
  return {
    ...approval,
    read_at: performance.now(),
    server_at: Number.isNaN(serverTime) ? undefined : serverTime + 500,
  };
}
