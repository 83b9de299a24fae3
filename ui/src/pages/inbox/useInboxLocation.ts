import { useCallback, useMemo } from "react";
import { useSearchParams } from "wouter";

/** What is open beside the list: one request, or all that are selected. It stands in the address, as the filters do. */
export interface InboxLocation {
  id: string;
  bulk: boolean;
  /** "push" where the list is left, so that the browser's back button leads to it again. */
  open: (id: string, how: "push" | "replace") => void;
  compare: () => void;
  close: () => void;
}

const LEFT = { leftList: true };

export function useInboxLocation(): InboxLocation {
  const [search, setSearch] = useSearchParams();
  const open = useCallback(
    (id: string, how: "push" | "replace") =>
      setSearch((old) => withPlace(old, { id }), {
        replace: how === "replace",
        state: how === "push" ? LEFT : null,
      }),
    [setSearch],
  );
  const compare = useCallback(
    () => setSearch((old) => withPlace(old, { bulk: "1", id: old.get("id") ?? "" }), { state: LEFT }),
    [setSearch],
  );
  const close = useCallback(() => {
    if ((history.state as typeof LEFT | null)?.leftList) history.back();
    else
      setSearch((old) => withPlace(old, old.has("bulk") ? { id: old.get("id") ?? "" } : {}), {
        replace: true,
      });
  }, [setSearch]);
  const id = search.get("id") ?? "";
  const bulk = search.get("bulk") === "1";
  return useMemo(() => ({ id, bulk, open, compare, close }), [id, bulk, open, compare, close]);
}

function withPlace(search: URLSearchParams, place: { id?: string; bulk?: string }): URLSearchParams {
  const next = new URLSearchParams(search);
  for (const name of ["id", "bulk"] as const) {
    if (place[name]) next.set(name, place[name]);
    else next.delete(name);
  }
  return next;
}
