import { Badge, Text, UnstyledButton } from "@mantine/core";
import type { FieldProps } from "@rjsf/utils";
import type { ReactNode } from "react";
import { parseJson, stringifyJson } from "../api/json";
import { escapeInvisible } from "../components/escapeInvisible";
import css from "./Editor.module.css";
import type { FormPlan } from "./formPlan";
import { useFieldState } from "./formState";
import { joinPointer, sameValue } from "./values";

/** A form field: its value, its setter, and its problems. */
export interface FormField {
  id: string;
  label: string;
  plan: FormPlan;
  value: unknown;
  before: unknown;
  marked: boolean;
  required: boolean;
  problems: string[];
  set: (value: unknown) => void;
  toJson: () => void;
}

export function useFormField({ schema, formData, fieldPathId, onChange, required }: FieldProps): FormField {
  const pointer = toPointer(fieldPathId.path);
  const { before, marked, problems, toJson } = useFieldState(pointer);
  return {
    id: fieldPathId.$id,
    label: toLabel(fieldPathId.path),
    plan: schema as unknown as FormPlan,
    value: typeof formData === "string" ? parseJson(formData) : undefined,
    before,
    marked,
    required: required ?? false,
    problems,
    set: (value) => onChange(value === undefined ? undefined : stringifyJson(value), fieldPathId.path),
    toJson,
  };
}

/** The frame of every input: name, change mark, and reset button. */
export function FieldFrame({ leaf, children }: { leaf: FormField; children: ReactNode }) {
  const { id, label, value, before } = leaf;
  const changed = leaf.marked && !sameValue(value, before);
  return (
    <div className={css.field} data-changed={changed || undefined}>
      <div className={css.head}>
        <label htmlFor={id} className={css.name}>
          {label}
        </label>
        {leaf.required && <span className={css.required}>required</span>}
        {changed && (
          <>
            <Badge size="sm" variant="light" className={css.mark}>
              changed
            </Badge>
            <UnstyledButton
              className={css.link}
              aria-label={`Reset ${label}`}
              onClick={() => leaf.set(before)}
            >
              Reset
            </UnstyledButton>
          </>
        )}
      </div>
      {children}
    </div>
  );
}

/** Description and error of an input, for screen readers too. */
export function inputLabels({ id, label, problems, plan }: FormField, hint = "") {
  return {
    id,
    description: [escapeInvisible(plan.description), hint].filter(Boolean).join(" ") || undefined,
    error: problems.map((problem) => `${label} ${problem}.`).join(" ") || undefined,
    classNames: { description: css.about, error: css.problem },
  };
}

export function FieldDescription({ id, text }: { id: string; text: string }) {
  return text ? (
    <Text id={`${id}-about`} className={css.about}>
      {text}
    </Text>
  ) : null;
}

export function toPointer(path: (string | number)[]): string {
  return path.reduce<string>(joinPointer, "");
}

export function toLabel(path: (string | number)[]): string {
  const last = path.at(-1);
  if (last === undefined) return "Answer";
  return typeof last === "number" ? `${toLabel(path.slice(0, -1))} ${last + 1}` : escapeInvisible(last);
}
