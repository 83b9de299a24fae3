import { useCallback } from "react";
import { useSearchParams } from "wouter";

/** Filters live in the address, so that a list can be sent to somebody; a new filter forgets what was open. */
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

/** A day as people pick it is a stretch of their own time zone; the day that ends it is in it. */
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
