import { needsEscapes } from "../components/visible";
import { checkSchema, isNullSchema, resolveReference, tupleItems } from "./checkSchema";
import { isObject, joinPointer, makeObject, type JsonObject } from "./values";

type FieldKind = "Text" | "Number" | "Flag" | "Choice" | "Locked" | "AsJson" | "Group" | "List";

/**
 * What the form shows: a schema for RJSF in which everything is settled. A leaf is a string, its value as JSON, so that
 * no digit and no null is lost on the way through; `$id` says which of our fields shows it.
 */
export interface FormPlan {
  $id: Exclude<FieldKind, "Group" | "List"> | undefined;
  type: "string" | "object" | "array";
  title: string;
  description: string;
  nullable: boolean;
  /** Texts of several lines. */
  long?: boolean;
  choices?: unknown[];
  whole?: boolean;
  properties?: Record<string, FormPlan>;
  required?: string[];
  items?: FormPlan;
}

const DEEPEST = 10;
const DEEPEST_ABSENT = 2; // a schema may contain itself, and what is not there has no end
const MOST_CHOICES = 200;
const MOST_FIELDS = 150;
const LONG = 70;
const HOPS = 32;

/** More fields than a form stays quick with, or than anybody would look through. */
export class TooManyFields extends Error {}

/**
 * The form for these values; `locked` are pointers whose values stay as they are, with `*` for any item of a list.
 * `declared`: nobody but the agent's program vouches for the schema, so the order is that of the arguments.
 */
export function makeFormPlan(
  schema: unknown,
  samples: unknown[],
  locked: ReadonlySet<string> = new Set(),
  declared = false,
): FormPlan {
  return new Planner(isObject(schema) ? schema : {}, locked, declared).plan(schema, samples, "", "");
}

class Planner {
  private fields = 0;
  private absent = 0;

  constructor(
    private readonly root: JsonObject,
    private readonly locked: ReadonlySet<string>,
    private readonly declared: boolean,
  ) {}

  plan(given: unknown, all: unknown[], title: string, pointer: string): FormPlan {
    if (++this.fields > MOST_FIELDS) throw new TooManyFields();
    const { schema, nullable } = simplifySchema(given, this.root, all);
    const samples = all.filter((sample) => sample !== undefined && !(nullable && sample === null));
    const description = typeof schema.description === "string" ? schema.description : "";
    const leaf = (kind: FormPlan["$id"], more: Partial<FormPlan> = {}): FormPlan => {
      return { $id: kind, type: "string", title, description, nullable, ...more };
    };
    if (this.isLocked(schema, pointer)) return leaf("Locked");
    const choices = choicesOf(schema);
    if (choices) return leaf("Choice", { choices });
    switch (typeOf(schema, samples)) {
      case "string":
        return samples.every(isPlainText) ? leaf("Text", { long: samples.some(isLong) }) : leaf("AsJson");
      case "integer":
        return samples.every(isNumeric) ? leaf("Number", { whole: true }) : leaf("AsJson");
      case "number":
        return samples.every(isNumeric) ? leaf("Number") : leaf("AsJson");
      case "boolean":
        return samples.every((sample) => typeof sample === "boolean") ? leaf("Flag") : leaf("AsJson");
      case "object":
        return (
          this.group(schema, samples, pointer, all.includes(null) ? undefined : leaf(undefined)) ??
          leaf("AsJson")
        );
      case "array":
        return (
          this.list(schema, samples, pointer, all.includes(null) ? undefined : leaf(undefined)) ??
          leaf("AsJson")
        );
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
    if (!bare || !samples.every(isObject) || depth(pointer) > DEEPEST) return undefined;
    const declared = isObject(schema.properties) ? schema.properties : {};
    const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
    const known = Object.keys(declared); // in the order of their names, so what has to be there is put first
    const given = samples.flatMap((sample) => Object.keys(sample));
    const first = this.declared ? given : known.filter((name) => required.includes(name));
    const names = new Set([...first, ...known, ...given]);
    if (names.size === 0 ? pointer !== "" : names.has("__proto__")) return undefined;
    const outer = this.absent;
    if (samples.length === 0 && ++this.absent > DEEPEST_ABSENT) return void (this.absent = outer);
    const members = [...names].map((name): [string, FormPlan] => {
      const own = Object.hasOwn(declared, name) ? declared[name] : schema.additionalProperties;
      const values = samples.map((sample) => (Object.hasOwn(sample, name) ? sample[name] : undefined));
      return [name, this.plan(own, values, name, joinPointer(pointer, name))];
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
    if (!bare || first.length > 0 || !samples.every(Array.isArray) || depth(pointer) > DEEPEST)
      return undefined;
    const items = this.plan(rest, samples.flat(), "", `${pointer}/*`);
    return items.$id === "AsJson" ? undefined : { ...bare, type: "array", items };
  }

  private isLocked(schema: JsonObject, pointer: string): boolean {
    return schema.readOnly === true || Object.hasOwn(schema, "const") || this.locked.has(pointer);
  }
}

/** Pointers with `*` in place of the items of lists, since a form has one plan for all of them. */
export function generalizePointer(value: unknown, pointer: string): string {
  const names = pointer.split("/").slice(1);
  let place: unknown = value;
  return names.reduce((made, name) => {
    const inList = Array.isArray(place);
    place = isObject(place) || Array.isArray(place) ? (place as JsonObject)[name] : undefined;
    return `${made}/${inList ? "*" : name}`;
  }, "");
}

function choicesOf(schema: JsonObject): unknown[] | undefined {
  const found = Array.isArray(schema.enum)
    ? schema.enum
    : (constantOptions(schema.anyOf) ?? constantOptions(schema.oneOf));
  if (!found || found.length === 0 || found.length > MOST_CHOICES) return undefined;
  return found.every((option) => typeof option !== "object" || option === null) ? found : undefined;
}

/** As the schema says; without a word there, as the values are. */
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

/** What somebody typed that is no number yet is a text, and stays in its field. */
function isNumeric(value: unknown): boolean {
  return ["number", "bigint", "string"].includes(typeof value);
}

function isPlainText(value: unknown): boolean {
  return typeof value === "string" && !needsEscapes(value);
}

function isLong(value: unknown): boolean {
  return typeof value === "string" && (value.length > LONG || value.includes("\n"));
}

function depth(pointer: string): number {
  return pointer.split("/").length;
}

/** A schema as a form needs it: references followed, `X or null` told apart, a union settled by the values. */
interface FormSchema {
  schema: JsonObject;
  nullable: boolean;
}

/** `samples` are the values that the form has to show; null is not among the alternatives that are left. */
function simplifySchema(given: unknown, root: JsonObject, samples: unknown[]): FormSchema {
  let schema = isObject(given) ? given : {};
  let nullable = false;
  for (let hop = 0; hop < HOPS; hop++) {
    const next = nearer(schema, root, samples);
    if (next === undefined) break;
    nullable ||= next.nullable;
    schema = next.schema;
  }
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((type) => type !== "null");
    nullable ||= types.length < schema.type.length;
    schema = { ...schema, type: types.length === 1 ? types[0] : types };
  }
  return { schema, nullable };
}

function nearer(schema: JsonObject, root: JsonObject, samples: unknown[]): FormSchema | undefined {
  if (schema.$ref !== undefined) return inside(schema, "$ref", resolveReference(root, schema.$ref));
  if (Array.isArray(schema.allOf) && schema.allOf.length === 1)
    return inside(schema, "allOf", schema.allOf[0]);
  for (const keyword of ["anyOf", "oneOf"]) {
    const options = schema[keyword];
    if (!Array.isArray(options) || constantOptions(options)) continue;
    const others = options.filter((option) => !isNullSchema(option));
    const [only] = others.length === 1 ? others : others.filter((option) => takes(option, root, samples));
    return { ...inside(schema, keyword, only), nullable: others.length < options.length };
  }
  return undefined;
}

/** What stands beside a reference, such as a description, goes with what it leads to. */
function inside(around: JsonObject, keyword: string, inner: unknown): FormSchema {
  const { [keyword]: _, ...beside } = around;
  return { schema: { ...(isObject(inner) ? inner : {}), ...beside }, nullable: false };
}

function takes(option: unknown, root: JsonObject, samples: unknown[]): boolean {
  const given = samples.filter((sample) => sample !== undefined && sample !== null);
  return given.length > 0 && given.every((sample) => checkSchema(option, sample, root).length === 0);
}

/** Alternatives that are one value each are a choice. */
function constantOptions(options: unknown): unknown[] | undefined {
  if (!Array.isArray(options) || options.length === 0) return undefined;
  return options.every((option) => isObject(option) && Object.hasOwn(option, "const"))
    ? options.map((option: JsonObject) => option.const)
    : undefined;
}
