import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { linkHeaders, setCounts } from "../live/link";
import { useLiveState } from "../live/live";
import { address, send, type Given, type Shapes } from "./client";
import { parse } from "./json";

export type Shown = Shapes["ApprovalJson"];
export type Item = Shapes["ApprovalItemJson"];
export type Finding = Shapes["FindingJson"];
export type Argument = Shapes["CardFieldJson"];
export type Kind = "approve" | "edit" | "respond" | "reject";
export type Status = Item["status"];

/**
 * `read_at` is this browser's steady clock when the answer came: time left is counted from there, whatever its date.
 * `server_at` is what the server's clock said then, where it is known.
 */
export type Read = Shown & { read_at: number; server_at?: number };

export interface Decision {
  kind: Kind;
  args_sha256: string;
  args?: Record<string, unknown>;
  message?: string;
  answer?: unknown;
  reason?: string;
  comment?: string;
  acknowledged?: string[];
}

const BLOCKED = 4_000; // how often to look where live events do not come through

export const approvalKey = (id: string) => ["approval", id] as const;

export async function readApproval(id: string, signal?: AbortSignal): Promise<Read> {
  return fetched("get", address("/api/approvals/{approval_id}", { approval_id: id }), { signal });
}

/** One approval, kept up to date by the live connection; by looking again where there is none. */
export function useApproval(id: string, initial?: Read) {
  const live = useLiveState();
  return useQuery({
    queryKey: approvalKey(id),
    queryFn: ({ signal }) => readApproval(id, signal),
    initialData: initial,
    refetchInterval: live === "live" ? false : BLOCKED,
  });
}

/** Everything a person can do to one approval answers with how it stands then. */
export function useMove(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ verb, body, once }: { verb: Verb; body: unknown; once: string }) => {
      const url = address(`/api/approvals/{approval_id}/${verb}`, { approval_id: id });
      return fetched("post", url, {
        body,
        once,
        headers: verb === "decision" ? linkHeaders(id) : undefined,
      });
    },
    onMutate: () => queries.cancelQueries({ queryKey: approvalKey(id) }), // it would come later, and be older
    onSuccess: (shown, { verb }) => {
      if (verb === "decision") setCounts(false); // it is spent
      queries.setQueryData(approvalKey(id), shown);
    },
    onError: () => queries.invalidateQueries({ queryKey: approvalKey(id) }),
  });
}

export type Verb =
  "decision" | "undo" | "claim" | "release" | "delegate" | "comment" | "ask" | "resolve-unknown";

async function fetched(method: string, url: string, given: Given<unknown>): Promise<Read> {
  const answer = await send(method, url, given);
  const shown = parse(await answer.text()) as Shown;
  const told = Date.parse(answer.headers.get("date") ?? "");
  // the header has whole seconds only
  return { ...shown, read_at: performance.now(), server_at: Number.isNaN(told) ? undefined : told + 500 };
}
