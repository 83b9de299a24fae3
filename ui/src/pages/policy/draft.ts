import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { Stored } from "./data";

/** A text that is not in force, and what it was made from. */
export interface Draft {
  text: string;
  base: Stored;
}

export interface Desk {
  inForce: Stored;
  draft: Draft | null;
  /** The draft, or what is in force without one. */
  text: string;
  change: (text: string) => void;
  discard: () => void;
  /** Somebody else put another version in force meanwhile, and one knows it now. */
  rebase: () => void;
}

const KEY = ["draft", "policy"];

/** One draft for the whole page: it outlives a look at other pages, and leaving the browser's page asks first. */
export function useDesk(inForce: Stored): Desk {
  const queries = useQueryClient();
  const kept = useQuery<Draft | null>({
    queryKey: KEY,
    queryFn: () => null,
    enabled: false,
    initialData: null,
    gcTime: Infinity,
  });
  const draft = kept.data;
  const keep = (next: Draft | null) => queries.setQueryData(KEY, next);
  useLeavingAsks(draft !== null);
  return {
    inForce,
    draft,
    text: draft?.text ?? inForce.text,
    change: (text) => keep(changed(draft, inForce, text)),
    discard: () => keep(null),
    rebase: () => keep(draft && changed({ ...draft, base: inForce }, inForce, draft.text)),
  };
}

/** A text that is what it was made from, and still in force, is no draft. */
export function changed(draft: Draft | null, inForce: Stored, text: string): Draft | null {
  const base = draft?.base ?? inForce;
  return text === base.text && base.version === inForce.version ? null : { text, base };
}

function useLeavingAsks(on: boolean): void {
  useEffect(() => {
    if (!on) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [on]);
}
