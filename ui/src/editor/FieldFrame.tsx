import { NativeSelect, Text, UnstyledButton } from "@mantine/core";
import type { FieldProps } from "@rjsf/utils";
import type { ReactNode } from "react";
import { parseJson, stringifyJson } from "../api/json";
import { repeatsName } from "../card/schema";
import { escapeInvisible, quoteVisible } from "../components/escapeInvisible";
import css from "./Editor.module.css";
import type { FormPlan } from "./formPlan";
import { useFieldState } from "./formState";
import * as messages from "./messages";
import { joinPointer, sameValue } from "./values";

const MAX_SHOWN = 160;

/** A form field: its value, its setter, and its problems. */
export interface FormField {
  id: string;
  label: string;
  /** The name of the argument, where the label says something else. */
  name: string;
  plan: FormPlan;
  value: unknown;
  before: unknown;
  marked: boolean;
  required: boolean;
  /** One of the items of a list, which is there because somebody added it. */
  isItem: boolean;
  problems: string[];
  set: (value: unknown) => void;
  /** Replaces the value by one of another form. */
  put: (value: unknown) => void;
  toJson: () => void;
}

export function useFormField({ schema, formData, fieldPathId, onChange, required }: FieldProps): FormField {
  const { path } = fieldPathId;
  const { before, marked, problems, put, toJson } = useFieldState(toPointer(path));
  const plan = schema as unknown as FormPlan;
  return {
    id: fieldPathId.$id,
    ...toLabels(path, plan),
    plan,
    value: typeof formData === "string" ? parseJson(formData) : undefined,
    before,
    marked,
    required: required ?? false,
    isItem: typeof path.at(-1) === "number",
    problems,
    set: (value) => onChange(value === undefined ? undefined : stringifyJson(value), path),
    put,
    toJson,
  };
}

/** The frame of every input: label, form, what it was before, and reset button. */
export function FieldFrame({ leaf, children }: { leaf: FormField; children: ReactNode }) {
  const { id, label, name, value, before, plan } = leaf;
  const changed = leaf.marked && !sameValue(value, before);
  return (
    <div
      className={css.field}
      data-changed={changed || undefined}
      data-width={plan.width}
      data-cell={plan.isCell || undefined}
    >
      <div className={css.head}>
        <label htmlFor={id} className={css.label}>
          {label}
        </label>
        {name && <span className={css.raw}>{name}</span>}
        {leaf.required && !leaf.isItem && <span className={css.required}>{messages.required}</span>}
      </div>
      <FormSwitch plan={plan} label={label} before={before} put={leaf.put} />
      {children}
      {changed && <WasLine label={label} before={before} onReset={() => leaf.set(before)} />}
    </div>
  );
}

interface WasLineProps {
  label: string;
  before: unknown;
  onReset: () => void;
}

/** What a value was before it was changed, and a way back. */
export function WasLine({ label, before, onReset }: WasLineProps) {
  return (
    <p className={css.was}>
      {before === undefined ? messages.wasNotSet : messages.wasPrefix}
      {before !== undefined && <span className={css.json}>{shorten(before)}</span>}
      {" · "}
      <UnstyledButton className={css.link} aria-label={messages.resetField(label)} onClick={onReset}>
        {messages.reset}
      </UnstyledButton>
    </p>
  );
}

interface SwitchProps {
  plan: FormPlan;
  label: string;
  before: unknown;
  put: (value: unknown) => void;
}

/** Switches between the forms that a value can have; the form from before comes with its value from before. */
export function FormSwitch({ plan: { forms }, label, before, put }: SwitchProps) {
  if (!forms) return null;
  return (
    <NativeSelect
      className={css.switch}
      aria-label={messages.kindOf(label)}
      value={String(forms.picked)}
      data={forms.options.map((option, at) => ({ value: String(at), label: escapeInvisible(option.label) }))}
      onChange={({ currentTarget: { value } }) => {
        const picked = Number(value);
        put(picked === forms.pickedBefore ? before : forms.options[picked]?.blank);
      }}
    />
  );
}

/** Description and error of an input, for screen readers too. */
export function inputLabels({ id, label, problems, plan, value }: FormField, hint = "") {
  return {
    id,
    placeholder:
      value === undefined || value === "" ? messages.empty : value === null ? messages.none : undefined,
    description: [escapeInvisible(plan.description), hint].filter(Boolean).join(" ") || undefined,
    error: problems.map((problem) => `${label} ${problem}.`).join(" ") || undefined,
    classNames: { description: css.about, error: css.problem, input: css.input },
    inputWrapperOrder: INPUT_ORDER,
  };
}

const INPUT_ORDER: ("label" | "input" | "description" | "error")[] = [
  "label",
  "input",
  "description",
  "error",
];

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

/** The title of the schema, and the name where the title says something else. */
export function toLabels(path: (string | number)[], plan: FormPlan): { label: string; name: string } {
  const last = path.at(-1);
  const title = plan.title && escapeInvisible(plan.title);
  if (last === undefined) return { label: title || messages.answer, name: "" };
  if (typeof last === "number") {
    const list = path.at(-2);
    return { label: `${title || escapeInvisible(String(list ?? messages.item))} ${last + 1}`, name: "" };
  }
  const row = path.at(-2);
  const place = plan.isCell && typeof row === "number" ? messages.rowNumber(row + 1) : "";
  const name = escapeInvisible(last);
  return { label: `${title || name}${place}`, name: title && !repeatsName(title, last) ? name : "" };
}

export function shorten(value: unknown): string {
  const text = typeof value === "string" ? quoteVisible(value) : escapeInvisible(stringifyJson(value));
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
