import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { callApi, type Schemas } from "../../api/client";
import * as messages from "./messages";

export type ObjectiveInfo = Schemas["ObjectiveInfo"];
export type ObjectiveDetails = Schemas["ObjectiveDetails"];
export type KeyResultInfo = Schemas["KeyResultInfo"];
export type ObjectiveStatus = ObjectiveInfo["status"];

export const STATUS_NAMES: Record<ObjectiveStatus, string> = {
  on_track: messages.onTrack,
  at_risk: messages.atRisk,
  off_track: messages.offTrack,
  achieved: messages.achieved,
  dropped: messages.dropped,
};

export const STATUS_OPTIONS = Object.entries(STATUS_NAMES).map(([value, label]) => ({ value, label }));

export interface ObjectiveFilters {
  q: string;
  quarter: string;
  status: ObjectiveStatus | "";
}

export function useObjectives({ q, quarter, status }: ObjectiveFilters) {
  return useInfiniteQuery({
    queryKey: ["okrs", "list", q, quarter, status],
    queryFn: ({ pageParam, signal }) =>
      callApi("get", "/api/objectives", {
        query: { q, quarter, status: status || undefined, cursor: pageParam },
        signal,
      }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: (before) => before,
  });
}

export function useObjective(id: string) {
  return useQuery({
    queryKey: ["okrs", "one", id],
    queryFn: ({ signal }) =>
      callApi("get", "/api/objectives/{objective_id}", { path: { objective_id: id }, signal }),
  });
}

/** "96 of 120 workshops" */
export function describeProgress({ current, target, unit }: KeyResultInfo): string {
  return messages.progressOfTarget(formatNumber(current), formatNumber(target), unit && ` ${unit}`);
}

const formatNumber = (value: number): string => value.toLocaleString("en", { maximumFractionDigits: 6 });

/** The number that a person typed, or nothing if it is none. */
export function parseTypedNumber(text: string): number | undefined {
  const plain = text.trim().replace(",", ".");
  const number = Number(plain);
  return plain && Number.isFinite(number) ? number : undefined;
}

/** A key result as it is typed: numbers are text until they are sent. */
export interface TypedKeyResult {
  title: string;
  current: string;
  target: string;
  unit: string;
}

export const NEW_KEY_RESULT: TypedKeyResult = { title: "", current: "0", target: "", unit: "" };

export const toTyped = ({ title, current, target, unit }: KeyResultInfo): TypedKeyResult => ({
  title,
  current: String(current),
  target: String(target),
  unit,
});

export function readTyped(typed: TypedKeyResult): Schemas["KeyResultBody"] {
  const current = parseTypedNumber(typed.current);
  const target = parseTypedNumber(typed.target);
  if (current === undefined || target === undefined) throw new Error(messages.enterNumbers);
  return { title: typed.title, current, target, unit: typed.unit.trim() };
}

export function replaceKeyResult(objective: ObjectiveDetails, saved: KeyResultInfo): ObjectiveDetails {
  const key_results = objective.key_results.map((result) => (result.id === saved.id ? saved : result));
  return { ...objective, key_results };
}
