import { createContext, useContext } from "react";
import { valueAt } from "./values";

/** Shared state of the form fields. */
interface FormState {
  /** The initial value of the draft. */
  before: unknown;
  /** Whether changes against it are marked. */
  marked: boolean;
  problems: ReadonlyMap<string, string[]>;
  /** Replaces a whole list or object. */
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
