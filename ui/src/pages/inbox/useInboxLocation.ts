import { useCallback, useMemo } from "react";
import { useSearchParams } from "wouter";

/** What is open next to the list: one request, or the bulk decision. It is in the URL, like the filters. */
export interface InboxLocation {
  id: string;
  bulk: boolean;
  /** "push" if the list is covered, so that the back button returns to it. */
  open: (id: string, historyMode: "push" | "replace") => void;
  /** Opens the request that follows a decided one; without an id, only the list is left. */
  advance: (id: string) => void;
  compare: () => void;
  close: () => void;
}

const LEFT_LIST = { leftList: true };

export function useInboxLocation(): InboxLocation {
  const [search, setSearch] = useSearchParams();
  const open = useCallback(
    (id: string, historyMode: "push" | "replace") =>
      setSearch((old) => withLocation(old, { id }), {
        replace: historyMode === "replace",
        state: historyMode === "push" ? LEFT_LIST : null,
      }),
    [setSearch],
  );
  const advance = useCallback(
    (id: string) =>
      setSearch((old) => withLocation(old, { id }), {
        replace: true,
        state: id ? (history.state as unknown) : null, // the back button still returns to the list
      }),
    [setSearch],
  );
  const compare = useCallback(
    () => setSearch((old) => withLocation(old, { bulk: "1", id: old.get("id") ?? "" }), { state: LEFT_LIST }),
    [setSearch],
  );
  const close = useCallback(() => {
    if ((history.state as typeof LEFT_LIST | null)?.leftList) history.back();
    else
      setSearch((old) => withLocation(old, old.has("bulk") ? { id: old.get("id") ?? "" } : {}), {
        replace: true,
      });
  }, [setSearch]);
  const id = search.get("id") ?? "";
  const bulk = search.get("bulk") === "1";
  return useMemo(
    () => ({ id, bulk, open, advance, compare, close }),
    [id, bulk, open, advance, compare, close],
  );
}

function withLocation(search: URLSearchParams, location: { id?: string; bulk?: string }): URLSearchParams {
  const next = new URLSearchParams(search);
  for (const name of ["id", "bulk"] as const) {
    if (location[name]) next.set(name, location[name]);
    else next.delete(name);
  }
  return next;
}
