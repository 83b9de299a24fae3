import { stringifyJson } from "../api/json";
import { isObject, joinPointer, readMember, sameValue, splitPointer, type JsonObject } from "./values";

/** What is wrong where, as the server says it. */
export interface SchemaProblem {
  pointer: string;
  message: string;
}

const STEPS = 30_000;
const MOST = 50;
const WORDS: Record<string, string> = {
  array: "a list",
  boolean: "true or false",
  integer: "a whole number",
  null: "null",
  number: "a number",
  object: "an object",
  string: "a text",
};

/**
 * A first look while somebody types; the server's word counts. Never refuses what the server takes: what depends on
 * regular expressions (an agent's could stall the page), on formats or on much work is left to the server.
 */
export function checkSchema(schema: unknown, value: unknown, root: unknown = schema): SchemaProblem[] {
  try {
    return new Checker(isObject(root) ? root : {}).look(schema, value, "").slice(0, MOST);
  } catch (error) {
    if (error instanceof TooMuch || error instanceof RangeError) return [];
    throw error;
  }
}

class TooMuch extends Error {}

class Checker {
  private left = STEPS;

  constructor(private readonly root: JsonObject) {}

  look(schema: unknown, value: unknown, pointer: string): SchemaProblem[] {
    if (--this.left < 0) throw new TooMuch();
    if (schema === false) return [{ pointer, message: "is not allowed here" }];
    if (!isObject(schema) || isSecret(value)) return [];
    if (schema.$ref !== undefined) return this.look(resolveReference(this.root, schema.$ref), value, pointer);
    const message = wrongType(schema, value) ?? wrongValue(schema, value);
    if (message) return [{ pointer, message }];
    return [
      ...limits(schema, value).map((message) => ({ pointer, message })),
      ...this.members(schema, value, pointer),
      ...this.items(schema, value, pointer),
      ...this.alternatives(schema, value, pointer),
    ];
  }

  private members(schema: JsonObject, value: unknown, pointer: string): SchemaProblem[] {
    if (!isObject(value)) return [];
    const declared = isObject(schema.properties) ? schema.properties : {};
    const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
    const closed = schema.patternProperties === undefined ? schema.additionalProperties : true;
    const missing = required.filter((name) => !Object.hasOwn(value, name));
    return [
      ...missing.map((name) => ({ pointer: joinPointer(pointer, name), message: "is required" })),
      ...Object.entries(value).flatMap(([name, inner]) => {
        const place = joinPointer(pointer, name);
        if (Object.hasOwn(declared, name)) return this.look(declared[name], inner, place);
        if (closed === false) return [{ pointer: place, message: "is not known here; remove it" }];
        return this.look(closed, inner, place);
      }),
    ];
  }

  private items(schema: JsonObject, value: unknown, pointer: string): SchemaProblem[] {
    if (!Array.isArray(value)) return [];
    const [first, rest] = tupleItems(schema);
    return value.flatMap((item, index) =>
      this.look(index < first.length ? first[index] : rest, item, joinPointer(pointer, index)),
    );
  }

  private alternatives(schema: JsonObject, value: unknown, pointer: string): SchemaProblem[] {
    const all = Array.isArray(schema.allOf) ? schema.allOf : [];
    const problems = all.flatMap((each) => this.look(each, value, pointer));
    for (const keyword of ["anyOf", "oneOf"]) {
      const options = schema[keyword];
      if (Array.isArray(options)) problems.push(...this.oneOf(options, value, pointer));
    }
    return problems;
  }

  /** Of `X or null` the problems are those of X. */
  private oneOf(options: unknown[], value: unknown, pointer: string): SchemaProblem[] {
    const found = options.map((option) => this.look(option, value, pointer));
    if (found.some((problems) => problems.length === 0)) return [];
    const others = found.filter((_, index) => !isNullSchema(options[index]));
    if (others.length === 1 && others[0]) return others[0];
    const words = new Set(found.map(([first]) => first?.message ?? ""));
    return [{ pointer, message: `fits none of the allowed forms: ${[...words].join("; or ")}` }];
  }
}

/** What stands for a secret; the server puts the secret back before it checks. */
function isSecret(value: unknown): boolean {
  return isObject(value) && typeof value.$secret === "string" && Object.keys(value).length === 1;
}

function wrongType(schema: JsonObject, value: unknown): string | undefined {
  const types = [schema.type].flat().filter((type) => typeof type === "string");
  if (types.length === 0 || types.some((type) => isOf(type, value))) return undefined;
  return `must be ${types
    .map((type) => WORDS[type] ?? type)
    .sort()
    .join(" or ")}`;
}

function isOf(type: string, value: unknown): boolean {
  switch (type) {
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "null":
      return value === null;
    case "number":
      return typeof value === "number" || typeof value === "bigint";
    case "integer":
      return typeof value === "bigint" || Number.isInteger(value);
    case "boolean":
    case "string":
      return typeof value === type;
    default:
      return true;
  }
}

function wrongValue(schema: JsonObject, value: unknown): string | undefined {
  if (Object.hasOwn(schema, "const") && !sameValue(schema.const, value))
    return `must be ${stringifyJson(schema.const)}`;
  if (Array.isArray(schema.enum) && !schema.enum.some((option) => sameValue(option, value)))
    return `must be one of ${schema.enum.map((option) => stringifyJson(option)).join(", ")}`;
  return undefined;
}

function limits(schema: JsonObject, value: unknown): string[] {
  const say = (
    keyword: string,
    broken: (limit: number | bigint) => boolean,
    words: (limit: string) => string,
  ) => {
    const limit = schema[keyword];
    return (typeof limit === "number" || typeof limit === "bigint") && broken(limit)
      ? [words(String(limit))]
      : [];
  };
  if (typeof value === "number" || typeof value === "bigint")
    return [
      ...say(
        "minimum",
        (limit) => value < limit,
        (limit) => `must be at least ${limit}`,
      ),
      ...say(
        "maximum",
        (limit) => value > limit,
        (limit) => `must be at most ${limit}`,
      ),
      ...say(
        "exclusiveMinimum",
        (limit) => value <= limit,
        (limit) => `must be more than ${limit}`,
      ),
      ...say(
        "exclusiveMaximum",
        (limit) => value >= limit,
        (limit) => `must be less than ${limit}`,
      ),
    ];
  if (typeof value === "string") {
    const size = schema.minLength === undefined && schema.maxLength === undefined ? 0 : [...value].length;
    return [
      ...say("minLength", (limit) => size < limit, few),
      ...say(
        "maxLength",
        (limit) => size > limit,
        (limit) => `must have at most ${limit} characters`,
      ),
    ];
  }
  if (Array.isArray(value))
    return [
      ...say(
        "minItems",
        (limit) => value.length < limit,
        (limit) => `must have at least ${limit} items`,
      ),
      ...say(
        "maxItems",
        (limit) => value.length > limit,
        (limit) => `must have at most ${limit} items`,
      ),
    ];
  return [];
}

function few(limit: string): string {
  return limit === "1" ? "must not be empty" : `must have at least ${limit} characters`;
}

/** What the first items have to fit, one by one, and the others; drafts before 2020-12 name it otherwise. */
export function tupleItems(schema: JsonObject): [first: unknown[], rest: unknown] {
  if (Array.isArray(schema.prefixItems)) return [schema.prefixItems, schema.items];
  if (Array.isArray(schema.items)) return [schema.items, schema.additionalItems];
  return [[], schema.items];
}

/** What `#/…` points to; nothing where it leads elsewhere, or where parts have addresses of their own. */
export function resolveReference(root: JsonObject, reference: unknown): unknown {
  if (reference === "#") return root;
  if (typeof reference !== "string" || !reference.startsWith("#/") || hasOwnAddresses(root)) return undefined;
  try {
    return splitPointer(decodeURIComponent(reference.slice(1))).reduce(readMember, root as unknown);
  } catch {
    return undefined;
  }
}

export function isNullSchema(option: unknown): boolean {
  return isObject(option) && option.type === "null";
}

const known = new WeakMap<JsonObject, boolean>();

function hasOwnAddresses(root: JsonObject): boolean {
  let found = known.get(root);
  if (found === undefined) known.set(root, (found = Object.values(root).some(addressed)));
  return found;
}

function addressed(part: unknown): boolean {
  if (Array.isArray(part)) return part.some(addressed);
  if (!isObject(part)) return false;
  return typeof part.$id === "string" || typeof part.id === "string" || Object.values(part).some(addressed);
}
