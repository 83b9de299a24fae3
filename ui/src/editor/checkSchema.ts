import { stringifyJson } from "../api/json";
import { resolveReference } from "../card/schema";
import * as messages from "./messages";
import { isObject, joinPointer, sameValue, type JsonObject } from "./values";

/** A schema violation, in the server's words. */
export interface SchemaProblem {
  pointer: string;
  message: string;
}

const MAX_STEPS = 30_000;
const MAX_PROBLEMS = 50;
const NEWER_DRAFT = /draft-07|2019-09|2020-12/;
/** Every valid text matches; some others do as well. */
const FORMATS: Record<string, RegExp> = {
  email: /^(?:".*"|[^\s@]+)@[^\s@]+$/,
  uri: /^[a-z][a-z0-9+.-]*:[^\s]*$/i,
  date: /^\d{4}-\d\d-\d\d$/,
  "date-time": /^\d{4}-\d\d-\d\d[t ]\d\d:\d\d:\d\d/i,
  time: /^\d\d:\d\d:\d\d/,
};

/**
 * A quick check while typing; the server decides. It never refuses what the server accepts: regular expressions
 * (which could stall the page), most of a format and expensive schemas are left to the server.
 */
export function checkSchema(schema: unknown, value: unknown, root: unknown = schema): SchemaProblem[] {
  try {
    return checkWithin({ left: MAX_STEPS }, schema, value, root);
  } catch (error) {
    if (error instanceof StepLimitReached) return [];
    throw error;
  }
}

/** A format by what people call it, whether the browser or the server found the problem. */
export function toPlainWords({ pointer, message }: SchemaProblem): SchemaProblem {
  const format = /^must be a valid ([\w-]+)$/.exec(message)?.[1] ?? "";
  return {
    pointer,
    message: Object.hasOwn(messages.FORMAT_NAMES, format)
      ? messages.mustBeFormats(messages.FORMAT_NAMES[format])
      : message,
  };
}

/** How many steps are left to several checks together. */
export interface StepBudget {
  left: number;
}

export class StepLimitReached extends Error {}

export function takeStep(steps: StepBudget): void {
  if (--steps.left < 0) throw new StepLimitReached();
}

/** The same as one of several checks; throws StepLimitReached when they have used up their steps. */
export function checkWithin(
  steps: StepBudget,
  schema: unknown,
  value: unknown,
  root: unknown,
): SchemaProblem[] {
  try {
    return new Checker(isObject(root) ? root : {}, steps).check(schema, value, "").slice(0, MAX_PROBLEMS);
  } catch (error) {
    if (error instanceof RangeError) return []; // deeper than the stack
    throw error;
  }
}

class Checker {
  constructor(
    private readonly root: JsonObject,
    private readonly steps: StepBudget,
  ) {}

  check(schema: unknown, value: unknown, pointer: string): SchemaProblem[] {
    takeStep(this.steps);
    if (schema === false) return [{ pointer, message: messages.isNotAllowedHere }];
    if (!isObject(schema) || isSecret(value)) return [];
    if (schema.$ref !== undefined)
      return this.check(resolveReference(this.root, schema.$ref), value, pointer);
    const message = typeMessage(schema, value) ?? valueMessage(schema, value);
    if (message) return [{ pointer, message }];
    return [
      ...[...limits(schema, value), ...this.formats(schema, value)].map((message) => ({ pointer, message })),
      ...this.members(schema, value, pointer),
      ...this.items(schema, value, pointer),
      ...this.alternatives(schema, value, pointer),
    ];
  }

  /** Only what no reading of the format allows. Older drafts do not know all of them. */
  private formats({ format }: JsonObject, value: unknown): string[] {
    const draft = this.root.$schema;
    const isKnown = typeof format === "string" && Object.hasOwn(FORMATS, format);
    if (!isKnown || typeof value !== "string" || (draft !== undefined && !NEWER_DRAFT.test(String(draft))))
      return [];
    return FORMATS[format]?.test(value) ? [] : [messages.mustBeValid(format)];
  }

  private members(schema: JsonObject, value: unknown, pointer: string): SchemaProblem[] {
    if (!isObject(value)) return [];
    const declared = isObject(schema.properties) ? schema.properties : {};
    const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
    const closed = schema.patternProperties === undefined ? schema.additionalProperties : true;
    const missing = required.filter((name) => !Object.hasOwn(value, name));
    return [
      ...missing.map((name) => ({ pointer: joinPointer(pointer, name), message: messages.isRequired })),
      ...Object.entries(value).flatMap(([name, inner]) => {
        const place = joinPointer(pointer, name);
        if (Object.hasOwn(declared, name)) return this.check(declared[name], inner, place);
        if (closed === false) return [{ pointer: place, message: messages.isNotKnownHere }];
        return this.check(closed, inner, place);
      }),
    ];
  }

  private items(schema: JsonObject, value: unknown, pointer: string): SchemaProblem[] {
    if (!Array.isArray(value)) return [];
    const [first, rest] = tupleItems(schema);
    return value.flatMap((item, index) =>
      this.check(index < first.length ? first[index] : rest, item, joinPointer(pointer, index)),
    );
  }

  private alternatives(schema: JsonObject, value: unknown, pointer: string): SchemaProblem[] {
    const all = Array.isArray(schema.allOf) ? schema.allOf : [];
    const problems = all.flatMap((each) => this.check(each, value, pointer));
    for (const keyword of ["anyOf", "oneOf"]) {
      const options = schema[keyword];
      if (Array.isArray(options)) problems.push(...this.oneOf(options, value, pointer));
    }
    return problems;
  }

  /** For `X or null`, the problems of X. */
  private oneOf(options: unknown[], value: unknown, pointer: string): SchemaProblem[] {
    const found = options.map((option) => this.check(option, value, pointer));
    if (found.some((problems) => problems.length === 0)) return [];
    const others = found.filter((_, index) => !isNullSchema(options[index]));
    if (others.length === 1 && others[0]) return others[0];
    const toMessage = new Set(found.map(([first]) => first?.message ?? ""));
    return [
      { pointer, message: messages.fitsNoneOfAllowedForms([...toMessage].join(messages.orBetweenForms)) },
    ];
  }
}

/** The placeholder of a secret; the server restores the secret before it validates. */
function isSecret(value: unknown): boolean {
  return isObject(value) && typeof value.$secret === "string" && Object.keys(value).length === 1;
}

function typeMessage(schema: JsonObject, value: unknown): string | undefined {
  const types = [schema.type].flat().filter((type) => typeof type === "string");
  if (types.length === 0 || types.some((type) => hasType(type, value))) return undefined;
  return messages.mustBeTypes(
    types
      .map((type) => messages.TYPE_NAMES[type] ?? type)
      .sort()
      .join(messages.orSeparator),
  );
}

function hasType(type: string, value: unknown): boolean {
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

function valueMessage(schema: JsonObject, value: unknown): string | undefined {
  if (Object.hasOwn(schema, "const") && !sameValue(schema.const, value))
    return messages.mustBeConstant(stringifyJson(schema.const));
  if (Array.isArray(schema.enum) && !schema.enum.some((option) => sameValue(option, value)))
    return messages.mustBeOneOf(schema.enum.map((option) => stringifyJson(option)).join(", "));
  return undefined;
}

function limits(schema: JsonObject, value: unknown): string[] {
  const limitMessage = (
    keyword: string,
    broken: (limit: number | bigint) => boolean,
    toMessage: (limit: string) => string,
  ) => {
    const limit = schema[keyword];
    return (typeof limit === "number" || typeof limit === "bigint") && broken(limit)
      ? [toMessage(String(limit))]
      : [];
  };
  if (typeof value === "number" || typeof value === "bigint")
    return [
      ...limitMessage(
        "minimum",
        (limit) => value < limit,
        (limit) => messages.mustBeAtLeast(limit),
      ),
      ...limitMessage(
        "maximum",
        (limit) => value > limit,
        (limit) => messages.mustBeAtMost(limit),
      ),
      ...limitMessage(
        "exclusiveMinimum",
        (limit) => value <= limit,
        (limit) => messages.mustBeMoreThan(limit),
      ),
      ...limitMessage(
        "exclusiveMaximum",
        (limit) => value >= limit,
        (limit) => messages.mustBeLessThan(limit),
      ),
    ];
  if (typeof value === "string") {
    const size = schema.minLength === undefined && schema.maxLength === undefined ? 0 : [...value].length;
    return [
      ...limitMessage("minLength", (limit) => size < limit, tooShort),
      ...limitMessage(
        "maxLength",
        (limit) => size > limit,
        (limit) => messages.mustHaveAtMostCharacters(limit),
      ),
    ];
  }
  if (Array.isArray(value))
    return [
      ...limitMessage(
        "minItems",
        (limit) => value.length < limit,
        (limit) => messages.mustHaveAtLeastItems(limit),
      ),
      ...limitMessage(
        "maxItems",
        (limit) => value.length > limit,
        (limit) => messages.mustHaveAtMostItems(limit),
      ),
    ];
  return [];
}

function tooShort(limit: string): string {
  return limit === "1" ? messages.mustNotBeEmpty : messages.mustHaveAtLeastCharacters(limit);
}

/** The schemas of the first items and of the rest; drafts before 2020-12 name them differently. */
export function tupleItems(schema: JsonObject): [first: unknown[], rest: unknown] {
  if (Array.isArray(schema.prefixItems)) return [schema.prefixItems, schema.items];
  if (Array.isArray(schema.items)) return [schema.items, schema.additionalItems];
  return [[], schema.items];
}

export function isNullSchema(option: unknown): boolean {
  return isObject(option) && option.type === "null";
}
