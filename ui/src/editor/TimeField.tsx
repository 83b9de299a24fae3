import { Text, TextInput } from "@mantine/core";
import type { FieldProps } from "@rjsf/utils";
import { FieldFrame, inputLabels, useFormField } from "./FieldFrame";
import * as messages from "./messages";

/** A date or a time as the browser's own field shows it, and what that field leaves out. */
interface TimeParts {
  shown: string;
  /** "Z" or "+01:00", which is kept as it is. */
  zone: string;
}

const TYPES: Record<string, "date" | "time" | "datetime-local"> = {
  date: "date",
  time: "time",
  "date-time": "datetime-local",
};
const PATTERNS: Record<string, RegExp> = {
  date: /^()(\d{4}-\d\d-\d\d)$/,
  time: /^()(\d\d:\d\d(?::\d\d)?)(z|[+-]\d\d:\d\d)?$/i,
  "date-time": /^(\d{4}-\d\d-\d\d)[t ](\d\d:\d\d(?::\d\d)?)(z|[+-]\d\d:\d\d)?$/i,
};

/** Dates and times in the browser's own fields. A text that such a field would change stays a text. */
export function TimeField(props: FieldProps) {
  const leaf = useFormField(props);
  const format = leaf.plan.format ?? "";
  const text = typeof leaf.value === "string" ? leaf.value : "";
  const parts = splitTime(format, text);
  const zone = parts?.zone || (format === "date" ? "" : "Z");
  const clear = leaf.plan.nullable
    ? leaf.before === undefined && !leaf.required
      ? undefined
      : null
    : undefined;
  return (
    <FieldFrame leaf={leaf}>
      {parts ? (
        <TextInput
          {...inputLabels(leaf)}
          type={TYPES[format]}
          step={format === "date" ? undefined : /:\d\d:(?!00)\d\d/.test(parts.shown) ? 1 : 60}
          value={parts.shown}
          rightSection={zone && <Text size="xs">{zone.toUpperCase() === "Z" ? messages.utc : zone}</Text>}
          rightSectionWidth={zone ? 56 : undefined}
          onChange={({ currentTarget: { value } }) =>
            leaf.set(value === "" ? clear : joinTime(format, value, zone))
          }
        />
      ) : (
        <TextInput
          {...inputLabels(leaf)}
          value={text}
          onChange={({ currentTarget: { value } }) => leaf.set(value)}
        />
      )}
    </FieldFrame>
  );
}

/** Null if the browser's field could not show it; an empty text is an empty field. */
export function splitTime(format: string, text: string): TimeParts | null {
  if (text === "") return { shown: "", zone: "" };
  const found = PATTERNS[format]?.exec(text);
  if (!found) return null;
  const [, date = "", rest = "", zone = ""] = found;
  const shown = date ? `${date}T${rest}` : rest;
  return isReal(format, shown) ? { shown, zone } : null;
}

export function joinTime(format: string, shown: string, zone: string): string {
  const withSeconds = format !== "date" && /^[^:]*:\d\d$/.test(shown) ? `${shown}:00` : shown;
  return `${withSeconds}${zone}`;
}

/** Browsers empty a field with February 30. */
function isReal(format: string, shown: string): boolean {
  const whole = format === "time" ? `2000-01-01T${shown}` : shown;
  const time = Date.parse(`${whole}${format === "date" ? "" : "Z"}`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(whole.slice(0, 10));
}
