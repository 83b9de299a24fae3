import { needsEscapes } from "../components/escapeInvisible";
import { memberOrder } from "../card/schema";
import { StepLimitReached, tupleItems, type StepBudget } from "./checkSchema";
import { pickForm } from "./schemaForms";
import { choicesOf, simplifySchema, type Choices } from "./simpleSchema";
import { isObject, joinPointer, makeObject, type JsonObject } from "./values";

type FieldKind = "Time" | "Text" | "Number" | "Flag" | "Choice" | "Locked" | "AsJson" | "Group" | "List";

/**
 * What the form shows: an RJSF schema without unions and references. A leaf is a string with its value as JSON, so
 * that no digit and no null is lost; `$id` names the field component.
 */
export interface FormPlan {
  $id: Exclude<FieldKind, "Group" | "List"> | undefined;
  type: "string" | "object" | "array";
  /** From the schema; empty if it has none. */
  title: string;
  description: string;
  nullable: boolean;
  /** How much room it needs. */
  width: "short" | "half" | "full";
  /** Multi-line text. */
  long?: boolean;
  format?: string;
  maxLength?: number;
  choices?: unknown[];
  /** What choices are called, where the schema says so. */
  choiceTitles?: string[];
  whole?: boolean;
  /** The forms that the value can have, if there are several. */
  forms?: FormChoice;
  /** A list of objects that fits a table, a line for each item. */
  isTable?: boolean;
  /** A line of a table, or a member of it. */
  isCell?: boolean;
  properties?: Record<string, FormPlan>;
  required?: string[];
  items?: FormPlan;
}

/** One of several forms; a value is switched to another one by its blank value. */
export interface FormChoice {
  options: { label: string; blank: unknown }[];
  picked: number;
  /** The form of the value before the edit. */
  pickedBefore: number;
}

const MAX_DEPTH = 10;
const MAX_ABSENT_DEPTH = 2; // limits recursive schemas where there are no values
const MAX_FIELDS = 150;
const MAX_STEPS = 60_000; // of all fields together, to find out which forms their values have
const LONG_TEXT = 70;
const MAX_COLUMNS = 6;
const SHORT_CHOICE = 14; // characters
const TIME_FORMATS = new Set(["date", "time", "date-time"]);

/** Too many fields for a usable form, or a schema that takes too long to fit to the values. */
export class TooManyFields extends Error {}

/**
 * The form for these values; `locked` are pointers to read-only values, with `*` for list items. `declared`: only the
 * agent's program provides the schema, so the order is that of the arguments.
 */
export function makeFormPlan(
  schema: unknown,
  samples: unknown[],
  locked: ReadonlySet<string> = new Set(),
  declared = false,
): FormPlan {
  try {
    return new Planner(isObject(schema) ? schema : {}, locked, declared).plan(schema, samples, "", "");
  } catch (error) {
    throw error instanceof StepLimitReached ? new TooManyFields() : error;
  }
}

class Planner {
  private fields = 0;
  private absent = 0;
  private readonly steps: StepBudget = { left: MAX_STEPS };

  constructor(
    private readonly root: JsonObject,
    private readonly locked: ReadonlySet<string>,
    private readonly declared: boolean,
  ) {}

  plan(given: unknown, all: unknown[], title: string, pointer: string): FormPlan {
    if (++this.fields > MAX_FIELDS) throw new TooManyFields();
    const union = pickForm(given, this.root, all, pointer.includes("/*"), this.steps);
    if (!union) return this.planOne(given, all, title, pointer);
    const plan = this.planOne(union.schema, union.samples, title, pointer);
    const { forms, description } = union;
    return { ...plan, title: union.title || plan.title, description: description || plan.description, forms };
  }

  private planOne(given: unknown, all: unknown[], title: string, pointer: string): FormPlan {
    const { schema, nullable } = simplifySchema(given, this.root, all, this.steps);
    const samples = all.filter((sample) => sample !== undefined && !(nullable && sample === null));
    const description = typeof schema.description === "string" ? schema.description : "";
    const ownTitle = typeof schema.title === "string" ? schema.title.trim() : "";
    const leaf = (kind: FormPlan["$id"], more: Partial<FormPlan> = {}): FormPlan => {
      const about = { title: ownTitle || title, description, nullable };
      return { $id: kind, type: "string", ...about, width: "full", ...more };
    };
    if (this.isLocked(schema, pointer)) return leaf("Locked", { width: "half" });
    const choices = choicesOf(schema);
    if (choices) return leaf("Choice", { ...choices, width: widthOfChoices(choices) });
    return this.planType(schema, samples, pointer, leaf, all.includes(null));
  }

  private planType(
    schema: JsonObject,
    samples: unknown[],
    pointer: string,
    leaf: (kind: FormPlan["$id"], more?: Partial<FormPlan>) => FormPlan,
    hasNull: boolean,
  ): FormPlan {
    const bare = hasNull ? undefined : leaf(undefined);
    switch (typeOf(schema, samples)) {
      case "string":
        return samples.every(isPlainText) ? textPlan(schema, samples, leaf) : leaf("AsJson");
      case "integer":
        return samples.every(isNumeric) ? leaf("Number", { whole: true, width: "short" }) : leaf("AsJson");
      case "number":
        return samples.every(isNumeric) ? leaf("Number", { width: "short" }) : leaf("AsJson");
      case "boolean":
        return samples.every((sample) => typeof sample === "boolean")
          ? leaf("Flag", { width: "short" })
          : leaf("AsJson");
      case "object":
        return this.group(schema, samples, pointer, bare) ?? leaf("AsJson");
      case "array":
        return this.list(schema, samples, pointer, bare) ?? leaf("AsJson");
      default:
        return leaf("AsJson");
    }
  }

  private group(
    schema: JsonObject,
    samples: unknown[],
    pointer: string,
    bare?: FormPlan,
  ): FormPlan | undefined {
    if (!bare || !samples.every(isObject) || depth(pointer) > MAX_DEPTH) return undefined;
    const declared = isObject(schema.properties) ? schema.properties : {};
    const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
    const known = memberOrder(schema);
    const given = samples.flatMap((sample) => Object.keys(sample));
    const names = new Set([...(this.declared ? given : []), ...known, ...given]);
    if (names.size === 0 ? pointer !== "" : names.has("__proto__")) return undefined;
    const outer = this.absent;
    if (samples.length === 0 && ++this.absent > MAX_ABSENT_DEPTH) return void (this.absent = outer);
    const members = [...names].map((name): [string, FormPlan] => {
      const own = Object.hasOwn(declared, name) ? declared[name] : schema.additionalProperties;
      const values = samples.map((sample) => (Object.hasOwn(sample, name) ? sample[name] : undefined));
      return [name, this.plan(own, values, "", joinPointer(pointer, name))];
    });
    this.absent = outer;
    return { ...bare, type: "object", properties: makeObject(members) as Record<string, FormPlan>, required };
  }

  private list(
    schema: JsonObject,
    samples: unknown[],
    pointer: string,
    bare?: FormPlan,
  ): FormPlan | undefined {
    const [first, rest] = tupleItems(schema);
    if (!bare || first.length > 0 || !samples.every(Array.isArray) || depth(pointer) > MAX_DEPTH)
      return undefined;
    const items = this.plan(rest, samples.flat(), bare.title, `${pointer}/*`);
    if (items.$id === "AsJson") return undefined;
    const isTable = fitsTable(items);
    return { ...bare, type: "array", items: isTable ? asRow(items) : items, isTable };
  }

  private isLocked(schema: JsonObject, pointer: string): boolean {
    return schema.readOnly === true || Object.hasOwn(schema, "const") || this.locked.has(pointer);
  }
}

/** Pointers with `*` in place of the items of lists, since a form has one plan for all of them. */
export function generalizePointer(value: unknown, pointer: string): string {
  const names = pointer.split("/").slice(1);
  let current: unknown = value;
  return names.reduce((made, name) => {
    const inList = Array.isArray(current);
    current = isObject(current) || Array.isArray(current) ? (current as JsonObject)[name] : undefined;
    return `${made}/${inList ? "*" : name}`;
  }, "");
}

function textPlan(
  schema: JsonObject,
  samples: unknown[],
  leaf: (kind: FormPlan["$id"], more?: Partial<FormPlan>) => FormPlan,
): FormPlan {
  const format = typeof schema.format === "string" ? schema.format : "";
  if (TIME_FORMATS.has(format))
    return leaf("Time", { format, width: format === "date-time" ? "half" : "short" });
  const long = samples.some(isLong);
  const maxLength = typeof schema.maxLength === "number" ? schema.maxLength : undefined;
  return leaf("Text", { format, long, maxLength, width: long ? "full" : "half" });
}

/** Up to six plain values in a line; a date with its time takes the room of three. */
function fitsTable({ properties, forms }: FormPlan): boolean {
  const cells = Object.values(properties ?? {});
  return (
    !forms &&
    cells.length > 0 &&
    cells.reduce((sum, { format }) => sum + (format === "date-time" ? 3 : 1), 0) <= MAX_COLUMNS &&
    cells.every(({ $id, long, forms }) => $id !== undefined && $id !== "AsJson" && !long && !forms)
  );
}

function asRow(items: FormPlan): FormPlan {
  const cells = Object.entries(items.properties ?? {}).map(([name, cell]): [string, FormPlan] => [
    name,
    { ...cell, isCell: true },
  ]);
  return { ...items, properties: makeObject(cells) as Record<string, FormPlan>, isCell: true };
}

function widthOfChoices({ choices, choiceTitles }: Choices): FormPlan["width"] {
  const labels = choiceTitles ?? choices.map(String);
  return labels.every((label) => label.length <= SHORT_CHOICE) ? "short" : "half";
}

/** The type from the schema, or else from the values. */
function typeOf(schema: JsonObject, samples: unknown[]): string | undefined {
  if (typeof schema.type === "string") return schema.type;
  const types = new Set(samples.map(typeOfValue));
  const [only] = types;
  const allowed = Array.isArray(schema.type) ? schema.type : undefined;
  return types.size === 1 && only && (!allowed || allowed.includes(only)) ? only : undefined;
}

function typeOfValue(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (value === null) return "null";
  return typeof value === "bigint" ? "number" : typeof value;
}

/** Input that is not a number yet is a string, and stays in its field. */
function isNumeric(value: unknown): boolean {
  return ["number", "bigint", "string"].includes(typeof value);
}

function isPlainText(value: unknown): boolean {
  return typeof value === "string" && !needsEscapes(value);
}

function isLong(value: unknown): boolean {
  return typeof value === "string" && (value.length > LONG_TEXT || value.includes("\n"));
}

function depth(pointer: string): number {
  return pointer.split("/").length;
}
