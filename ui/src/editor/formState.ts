import { createContext, useContext } from "react";
import { valueAt } from "./values";

/** What every field of the form knows besides its own value. */
interface FormState {
  /** What the draft began as. */
  before: unknown;
  /** Whether it matters what differs from that. */
  marked: boolean;
  problems: ReadonlyMap<string, string[]>;
  /** Puts a whole list or object back. */
  put: (pointer: string, value: unknown) => void;
  /** Shows the value in the JSON view. */
  toJson: (pointer: string) => void;
}

export const FormStateContext = createContext<FormState>({
  before: undefined,
  marked: false,
  problems: new Map(),
  put: () => undefined,
  toJson: () => undefined,
});

export function useFieldState(pointer: string) {
  const { before, marked, problems, put, toJson } = useContext(FormStateContext);
  return {
    before: valueAt(before, pointer),
    marked,
    problems: problems.get(pointer) ?? [],
    put: (value: unknown) => put(pointer, value),
    toJson: () => toJson(pointer),
  };
}
