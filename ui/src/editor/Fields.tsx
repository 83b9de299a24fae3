import { Button, Code, Group, NativeSelect, Switch, Text, TextInput, Textarea } from "@mantine/core";
import type { FieldProps } from "@rjsf/utils";
import { useState } from "react";
import { write } from "../api/json";
import css from "./Editor.module.css";
import { Field, useLeaf, worded, type Leaf } from "./Field";
import { numberFrom } from "./numbers";
import { isObject, same } from "./values";
import { quoted, visible } from "../components/visible";

const SHOWN = 160;
const NONE = "";

export function TextField(props: FieldProps) {
  const leaf = useLeaf(props);
  const given = {
    ...worded(leaf, hint(leaf)),
    value: typeof leaf.value === "string" ? leaf.value : "",
    placeholder: placeholder(leaf, "empty text"),
    onChange: (event: { currentTarget: { value: string } }) =>
      leaf.set(emptied(leaf, event.currentTarget.value)),
  };
  return (
    <Field leaf={leaf}>
      {leaf.plan.long ? <Textarea {...given} autosize minRows={3} maxRows={16} /> : <TextInput {...given} />}
    </Field>
  );
}

/** Typed as text, since a browser's own number input rounds and drops what it does not understand. */
export function NumberField(props: FieldProps) {
  const leaf = useLeaf(props);
  const [typed, setTyped] = useState("");
  const shown = same(valueOf(leaf, typed), leaf.value) ? typed : digits(leaf.value);
  return (
    <Field leaf={leaf}>
      <TextInput
        {...worded(leaf, hint(leaf))}
        inputMode={leaf.plan.whole ? "numeric" : "decimal"}
        autoComplete="off"
        placeholder={placeholder(leaf, "a number")}
        value={shown}
        onChange={({ currentTarget: { value } }) => {
          setTyped(value);
          leaf.set(valueOf(leaf, value));
        }}
      />
    </Field>
  );
}

export function FlagField(props: FieldProps) {
  const leaf = useLeaf(props);
  if (leaf.plan.nullable || typeof leaf.value !== "boolean")
    return <Choice leaf={{ ...leaf, plan: { ...leaf.plan, choices: [true, false] } }} />;
  return (
    <Field leaf={leaf}>
      <Group gap="xs" className={css.target}>
        <Switch
          {...worded(leaf)}
          checked={leaf.value}
          onChange={({ currentTarget: { checked } }) => leaf.set(checked)}
        />
        <Code>{String(leaf.value)}</Code>
      </Group>
    </Field>
  );
}

export function ChoiceField(props: FieldProps) {
  return <Choice leaf={useLeaf(props)} />;
}

function Choice({ leaf }: { leaf: Leaf }) {
  const { plan, value, before, required } = leaf;
  const choices = plan.choices ?? [];
  const strange = [value, before].filter(
    (each) => each !== undefined && each !== null && !choices.some((choice) => same(choice, each)),
  );
  const offered = [...choices, ...strange].map((choice) => ({ value: write(choice), label: named(choice) }));
  const absent = (plan.nullable && !choices.includes(null)) || !required || value === undefined;
  return (
    <Field leaf={leaf}>
      <NativeSelect
        {...worded(leaf)}
        data={[...(absent ? [{ value: NONE, label: plan.nullable ? "none" : "not given" }] : []), ...offered]}
        value={value === undefined || (value === null && !choices.includes(null)) ? NONE : write(value)}
        onChange={({ currentTarget: { value: picked } }) => {
          const found = [...choices, ...strange].find((choice) => write(choice) === picked);
          leaf.set(picked === NONE ? nothing(leaf) : found);
        }}
      />
    </Field>
  );
}

/** Secrets, and what the tool's schema fixes: shown, and sent back as it was. */
export function LockedField(props: FieldProps) {
  const leaf = useLeaf(props);
  const { value } = leaf;
  const secret = isObject(value) && typeof value.$secret === "string";
  return (
    <Field leaf={leaf}>
      <TextInput
        {...worded(leaf, "Locked: it stays as it is.")}
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
    </Field>
  );
}

export function AsJsonField(props: FieldProps) {
  const leaf = useLeaf(props);
  return (
    <Field leaf={leaf}>
      <Group gap="xs" className={css.target}>
        <Text className={css.json}>{leaf.value === undefined ? "not given" : brief(leaf.value)}</Text>
        <Button id={leaf.id} size="compact-sm" variant="default" onClick={leaf.toJson}>
          Edit as JSON
        </Button>
      </Group>
      {leaf.problems.map((problem) => (
        <Text key={problem} className={css.problem}>
          {leaf.label} {problem}.
        </Text>
      ))}
    </Field>
  );
}

/** A number where it is one; otherwise what was typed, which the look at the arguments then complains about. */
function valueOf(leaf: Leaf, typed: string): unknown {
  return typed.trim() === "" ? nothing(leaf) : (numberFrom(typed) ?? typed);
}

/** An emptied text is none where that is allowed, unless it was an empty text or nothing before. */
function emptied(leaf: Leaf, typed: string): unknown {
  if (typed !== "" || leaf.before === "") return typed;
  if (leaf.plan.nullable) return leaf.before === undefined && !leaf.required ? undefined : null;
  return leaf.before === undefined && !leaf.required ? undefined : typed;
}

function nothing({ plan, before, required }: Leaf): unknown {
  if (plan.nullable) return before === undefined && !required ? undefined : null;
  return undefined;
}

function hint({ plan, required, before }: Leaf): string {
  if (plan.nullable) return "Leave empty for none.";
  return required || before !== undefined ? "" : "May be left out.";
}

function placeholder({ value }: Leaf, empty: string): string {
  return value === undefined ? "not given" : value === null ? "none" : empty;
}

function digits(value: unknown): string {
  return typeof value === "number" || typeof value === "bigint" || typeof value === "string"
    ? String(value)
    : "";
}

function named(choice: unknown): string {
  return typeof choice === "string" ? (choice === "" ? '""' : visible(choice)) : write(choice);
}

function brief(value: unknown): string {
  const text = typeof value === "string" ? quoted(value) : visible(write(value));
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}
