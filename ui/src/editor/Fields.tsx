import { Button, Code, Group, NativeSelect, Switch, Text, Textarea, TextInput } from "@mantine/core";
import type { FieldProps } from "@rjsf/utils";
import { useState } from "react";
import { parseJson, stringifyJson } from "../api/json";
import { escapeInvisible } from "../components/escapeInvisible";
import css from "./Editor.module.css";
import { FieldFrame, inputLabels, shorten, useFormField, type FormField } from "./FieldFrame";
import * as messages from "./messages";
import { isObject, sameValue } from "./values";

const NONE = "";
const NUMBER = /^-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const MAX_DIGITS = 40;

export function TextField(props: FieldProps) {
  const leaf = useFormField(props);
  const inputProps = {
    ...inputLabels(leaf, lengthHint(leaf)),
    value: typeof leaf.value === "string" ? leaf.value : "",
    inputMode: INPUT_MODES[leaf.plan.format ?? ""],
    onChange: (event: { currentTarget: { value: string } }) =>
      leaf.set(clearedText(leaf, event.currentTarget.value)),
  };
  return (
    <FieldFrame leaf={leaf}>
      {leaf.plan.long ? (
        <Textarea {...inputProps} autosize minRows={3} maxRows={16} />
      ) : (
        <TextInput {...inputProps} />
      )}
    </FieldFrame>
  );
}

/** A text input, because a native number input rounds and drops input. */
export function NumberField(props: FieldProps) {
  const leaf = useFormField(props);
  const [typed, setTyped] = useState("");
  const shown = sameValue(parseTyped(leaf, typed), leaf.value) ? typed : toDigits(leaf.value);
  return (
    <FieldFrame leaf={leaf}>
      <TextInput
        {...inputLabels(leaf)}
        inputMode={leaf.plan.whole ? "numeric" : "decimal"}
        autoComplete="off"
        value={shown}
        onChange={({ currentTarget: { value } }) => {
          setTyped(value);
          leaf.set(parseTyped(leaf, value));
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
  const unlisted = [value, before].filter(
    (each) => each !== undefined && each !== null && !choices.some((choice) => sameValue(choice, each)),
  );
  const options = [...choices, ...unlisted].map((choice, at) => ({
    value: stringifyJson(choice),
    label: choiceLabel(choice, plan.choiceTitles?.[at]),
  }));
  const absent = (plan.nullable && !choices.includes(null)) || !required || value === undefined;
  return (
    <FieldFrame leaf={leaf}>
      <NativeSelect
        {...inputLabels(leaf)}
        data={[
          ...(absent ? [{ value: NONE, label: plan.nullable ? messages.none : messages.empty }] : []),
          ...options,
        ]}
        value={
          value === undefined || (value === null && !choices.includes(null)) ? NONE : stringifyJson(value)
        }
        onChange={({ currentTarget: { value: picked } }) => {
          const found = [...choices, ...unlisted].find((choice) => stringifyJson(choice) === picked);
          leaf.set(picked === NONE ? emptyValue(leaf) : found);
        }}
      />
    </FieldFrame>
  );
}

/** Secrets and fixed values: read-only, and sent back unchanged. */
export function LockedField(props: FieldProps) {
  const leaf = useFormField(props);
  const { value } = leaf;
  const secret = isObject(value) && typeof value.$secret === "string";
  return (
    <FieldFrame leaf={leaf}>
      <TextInput
        {...inputLabels(leaf, messages.cannotBeEdited)}
        readOnly
        data-locked
        value={
          secret
            ? `Secret, hidden · fingerprint ${escapeInvisible(String(value.$secret))}`
            : value === undefined
              ? ""
              : shorten(value)
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
        <Text className={css.json}>{leaf.value === undefined ? messages.empty : shorten(leaf.value)}</Text>
        <Button id={leaf.id} size="compact-sm" variant="default" onClick={leaf.toJson}>
          {messages.editAsJson}
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

/** A number if the input is one, otherwise the raw text, which the schema check then reports. */
function parseTyped(leaf: FormField, typed: string): unknown {
  return typed.trim() === "" ? emptyValue(leaf) : (parseNumber(typed) ?? typed);
}

/** A cleared text becomes null or absent where that is allowed, unless it was empty or absent before. */
function clearedText(leaf: FormField, typed: string): unknown {
  if (typed !== "" || leaf.before === "") return typed;
  if (leaf.plan.nullable) return leaf.before === undefined && !leaf.required ? undefined : null;
  return leaf.before === undefined && !leaf.required ? undefined : typed;
}

function emptyValue({ plan, before, required }: FormField): unknown {
  if (plan.nullable) return before === undefined && !required ? undefined : null;
  return undefined;
}

/** The keyboard of a phone; the field itself stays a plain one, which changes nothing that is typed. */
const INPUT_MODES: Record<string, "email" | "url" | undefined> = { email: "email", uri: "url" };
const SHOWN_SHARE = 0.7; // of the longest text that is allowed; before that the count is of no use

function lengthHint({ plan: { maxLength }, value }: FormField): string {
  const length = typeof value === "string" ? [...value].length : 0;
  return maxLength && length > maxLength * SHOWN_SHARE ? messages.charactersOf(length, maxLength) : "";
}

function toDigits(value: unknown): string {
  return typeof value === "number" || typeof value === "bigint" || typeof value === "string"
    ? String(value)
    : "";
}

function choiceLabel(choice: unknown, title?: string): string {
  if (title) return `${escapeInvisible(title)} (${stringifyJson(choice)})`;
  return typeof choice === "string"
    ? choice === ""
      ? '""'
      : escapeInvisible(choice)
    : stringifyJson(choice);
}

/** A typed number with all of its digits; undefined if it is not a number. */
export function parseNumber(typed: string): number | bigint | undefined {
  const text = typed.trim().replace(/^\+/, "");
  if (!NUMBER.test(text)) return undefined;
  const normalized = text
    .replace(/^(-?)0+(?=\d)/, "$1")
    .replace(/^(-?)\./, "$10.")
    .replace(/\.(?=$|[eE])/, "");
  const found = parseJson(normalized) as number | bigint;
  if (typeof found === "bigint") return normalized.replace("-", "").length > MAX_DIGITS ? undefined : found;
  return Number.isFinite(found) ? found : undefined;
}
