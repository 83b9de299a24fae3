import { Badge, Text, UnstyledButton } from "@mantine/core";
import type { FieldProps } from "@rjsf/utils";
import type { ReactNode } from "react";
import { parse, write } from "../api/json";
import css from "./Editor.module.css";
import { useEditing } from "./editing";
import type { Plan } from "./plan";
import { same, step } from "./values";
import { visible } from "../components/visible";

/** A leaf of the form: its value, how to change it, and what is said of it. */
export interface Leaf {
  id: string;
  label: string;
  plan: Plan;
  value: unknown;
  before: unknown;
  marked: boolean;
  required: boolean;
  problems: string[];
  set: (value: unknown) => void;
  toJson: () => void;
}

export function useLeaf({ schema, formData, fieldPathId, onChange, required }: FieldProps): Leaf {
  const pointer = pointerOf(fieldPathId.path);
  const { before, marked, problems, toJson } = useEditing(pointer);
  return {
    id: fieldPathId.$id,
    label: labelOf(fieldPathId.path),
    plan: schema as unknown as Plan,
    value: typeof formData === "string" ? parse(formData) : undefined,
    before,
    marked,
    required: required ?? false,
    problems,
    set: (value) => onChange(value === undefined ? undefined : write(value), fieldPathId.path),
    toJson,
  };
}

/** What is around every input: the argument's name, whether it was changed, and the way back. */
export function Field({ leaf, children }: { leaf: Leaf; children: ReactNode }) {
  const { id, label, value, before } = leaf;
  const changed = leaf.marked && !same(value, before);
  return (
    <div className={css.field} data-changed={changed || undefined}>
      <div className={css.head}>
        <label htmlFor={id} className={css.name}>
          {label}
        </label>
        {leaf.required && <span className={css.required}>needed</span>}
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

/** For the input itself: the words that belong to it, which a screen reader then says with it. */
export function worded({ id, label, problems, plan }: Leaf, hint = "") {
  return {
    id,
    description: [visible(plan.description), hint].filter(Boolean).join(" ") || undefined,
    error: problems.map((problem) => `${label} ${problem}.`).join(" ") || undefined,
    classNames: { description: css.about, error: css.problem },
  };
}

export function About({ id, text }: { id: string; text: string }) {
  return text ? (
    <Text id={`${id}-about`} className={css.about}>
      {text}
    </Text>
  ) : null;
}

export function pointerOf(path: (string | number)[]): string {
  return path.reduce<string>(step, "");
}

export function labelOf(path: (string | number)[]): string {
  const last = path.at(-1);
  if (last === undefined) return "Answer";
  return typeof last === "number" ? `${labelOf(path.slice(0, -1))} ${last + 1}` : visible(last);
}
