import { Button, Code, Group, NativeSelect, Switch, Text, Textarea, TextInput } from "@mantine/core";
import type { FieldProps } from "@rjsf/utils";
import { useState } from "react";
import { parseJson, stringifyJson } from "../api/json";
import { quoteVisible, visible } from "../components/visible";
import css from "./Editor.module.css";
import { FieldFrame, inputLabels, useFormField, type FormField } from "./FieldFrame";
import { isObject, sameValue } from "./values";

const SHOWN = 160;
const NONE = "";
const LIKE_JSON = /^-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const DIGITS = 40;

export function TextField(props: FieldProps) {
  const leaf = useFormField(props);
  const given = {
    ...inputLabels(leaf, hint(leaf)),
    value: typeof leaf.value === "string" ? leaf.value : "",
    placeholder: placeholder(leaf, "empty text"),
    onChange: (event: { currentTarget: { value: string } }) =>
      leaf.set(emptied(leaf, event.currentTarget.value)),
  };
  return (
    <FieldFrame leaf={leaf}>
      {leaf.plan.long ? <Textarea {...given} autosize minRows={3} maxRows={16} /> : <TextInput {...given} />}
    </FieldFrame>
  );
}

/** Typed as text, since a browser's own number input rounds and drops what it does not understand. */
export function NumberField(props: FieldProps) {
  const leaf = useFormField(props);
  const [typed, setTyped] = useState("");
  const shown = sameValue(valueOf(leaf, typed), leaf.value) ? typed : digits(leaf.value);
  return (
    <FieldFrame leaf={leaf}>
      <TextInput
        {...inputLabels(leaf, hint(leaf))}
        inputMode={leaf.plan.whole ? "numeric" : "decimal"}
        autoComplete="off"
        placeholder={placeholder(leaf, "a number")}
        value={shown}
        onChange={({ currentTarget: { value } }) => {
          setTyped(value);
          leaf.set(valueOf(leaf, value));
        }}
      />
    </FieldFrame>
  );
}

export function FlagField(props: FieldProps) {
  const leaf = useFormField(props);
  if (leaf.plan.nullable || typeof leaf.value !== "boolean")
    return <Choice leaf={{ ...leaf, plan: { ...leaf.plan, choices: [true, false] } }} />;
  return (
    <FieldFrame leaf={leaf}>
      <Group gap="xs" className={css.target}>
        <Switch
          {...inputLabels(leaf)}
          checked={leaf.value}
          onChange={({ currentTarget: { checked } }) => leaf.set(checked)}
        />
        <Code>{String(leaf.value)}</Code>
      </Group>
    </FieldFrame>
  );
}

export function ChoiceField(props: FieldProps) {
  return <Choice leaf={useFormField(props)} />;
}

function Choice({ leaf }: { leaf: FormField }) {
  const { plan, value, before, required } = leaf;
  const choices = plan.choices ?? [];
  const strange = [value, before].filter(
    (each) => each !== undefined && each !== null && !choices.some((choice) => sameValue(choice, each)),
  );
  const offered = [...choices, ...strange].map((choice) => ({
    value: stringifyJson(choice),
    label: named(choice),
  }));
  const absent = (plan.nullable && !choices.includes(null)) || !required || value === undefined;
  return (
    <FieldFrame leaf={leaf}>
      <NativeSelect
        {...inputLabels(leaf)}
        data={[...(absent ? [{ value: NONE, label: plan.nullable ? "none" : "not set" }] : []), ...offered]}
        value={
          value === undefined || (value === null && !choices.includes(null)) ? NONE : stringifyJson(value)
        }
        onChange={({ currentTarget: { value: picked } }) => {
          const found = [...choices, ...strange].find((choice) => stringifyJson(choice) === picked);
          leaf.set(picked === NONE ? nothing(leaf) : found);
        }}
      />
    </FieldFrame>
  );
}

/** Secrets, and what the tool's schema fixes: shown, and sent back as it was. */
export function LockedField(props: FieldProps) {
  const leaf = useFormField(props);
  const { value } = leaf;
  const secret = isObject(value) && typeof value.$secret === "string";
  return (
    <FieldFrame leaf={leaf}>
      <TextInput
        {...inputLabels(leaf, "Locked: cannot be changed.")}
        readOnly
        data-locked
        value={
          secret
            ? `hidden, fingerprint ${visible(String(value.$secret))}`
            : value === undefined
              ? ""
              : brief(value)
        }
      />
    </FieldFrame>
  );
}

export function AsJsonField(props: FieldProps) {
  const leaf = useFormField(props);
  return (
    <FieldFrame leaf={leaf}>
      <Group gap="xs" className={css.target}>
        <Text className={css.json}>{leaf.value === undefined ? "not set" : brief(leaf.value)}</Text>
        <Button id={leaf.id} size="compact-sm" variant="default" onClick={leaf.toJson}>
          Edit as JSON
        </Button>
      </Group>
      {leaf.problems.map((problem) => (
        <Text key={problem} className={css.problem}>
          {leaf.label} {problem}.
        </Text>
      ))}
    </FieldFrame>
  );
}

/** A number where it is one; otherwise what was typed, which the look at the arguments then complains about. */
function valueOf(leaf: FormField, typed: string): unknown {
  return typed.trim() === "" ? nothing(leaf) : (parseNumber(typed) ?? typed);
}

/** An emptied text is none where that is allowed, unless it was an empty text or nothing before. */
function emptied(leaf: FormField, typed: string): unknown {
  if (typed !== "" || leaf.before === "") return typed;
  if (leaf.plan.nullable) return leaf.before === undefined && !leaf.required ? undefined : null;
  return leaf.before === undefined && !leaf.required ? undefined : typed;
}

function nothing({ plan, before, required }: FormField): unknown {
  if (plan.nullable) return before === undefined && !required ? undefined : null;
  return undefined;
}

function hint({ plan, required, before }: FormField): string {
  if (plan.nullable) return "Leave empty for none.";
  return required || before !== undefined ? "" : "Optional.";
}

function placeholder({ value }: FormField, empty: string): string {
  return value === undefined ? "not set" : value === null ? "none" : empty;
}

function digits(value: unknown): string {
  return typeof value === "number" || typeof value === "bigint" || typeof value === "string"
    ? String(value)
    : "";
}

function named(choice: unknown): string {
  return typeof choice === "string" ? (choice === "" ? '""' : visible(choice)) : stringifyJson(choice);
}

function brief(value: unknown): string {
  const text = typeof value === "string" ? quoteVisible(value) : visible(stringifyJson(value));
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

/** What somebody typed as a number with all of its digits; undefined while it is none. */
export function parseNumber(typed: string): number | bigint | undefined {
  const text = typed.trim().replace(/^\+/, "");
  if (!LIKE_JSON.test(text)) return undefined;
  const tidy = text
    .replace(/^(-?)0+(?=\d)/, "$1")
    .replace(/^(-?)\./, "$10.")
    .replace(/\.(?=$|[eE])/, "");
  const found = parseJson(tidy) as number | bigint;
  if (typeof found === "bigint") return tidy.replace("-", "").length > DIGITS ? undefined : found;
  return Number.isFinite(found) ? found : undefined;
}
