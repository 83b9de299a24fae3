import { useCallback } from "react";
import { useSearchParams } from "wouter";

/** Filters in the URL, so that a list can be shared; a new filter closes the open item. */
export function useAddressFilters(): [
  (name: string) => string,
  (changes: Record<string, string>, how?: "keep") => void,
] {
  const [params, setParams] = useSearchParams();
  const get = useCallback((name: string) => params.get(name) ?? "", [params]);
  const set = useCallback(
    (changes: Record<string, string>, how?: "keep") =>
      setParams(
        (before) => {
          const next = new URLSearchParams(before);
          if (how !== "keep") next.delete("id");
          for (const [name, value] of Object.entries(changes))
            if (value) next.set(name, value);
            else next.delete(name);
          return next;
        },
        { replace: how !== "keep" },
      ),
    [setParams],
  );
  return [get, set];
}

/** A day in the user's time zone; the last day is included. */
export function startOfDay(day: string): string {
  const at = new Date(`${day}T00:00:00`);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString();
}

export function endOfDay(day: string): string {
  const at = new Date(`${day}T00:00:00`);
  if (Number.isNaN(at.getTime())) return "";
  at.setDate(at.getDate() + 1);
  return at.toISOString();
}
