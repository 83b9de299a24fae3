import { resolveReference } from "../card/schema";
import { checkWithin, isNullSchema, type StepBudget } from "./checkSchema";
import { isObject, type JsonObject } from "./values";

const MAX_CHOICES = 200;
const MAX_HOPS = 32;

/**
 * A schema as a form needs it: references resolved, `X or null` marked as nullable, unions resolved by the values.
 */
export interface FormSchema {
  schema: JsonObject;
  nullable: boolean;
}

/** `samples` are the values that the form shows; null is not among the remaining alternatives. */
export function simplifySchema(
  given: unknown,
  root: JsonObject,
  samples: unknown[],
  steps: StepBudget,
): FormSchema {
  let schema = isObject(given) ? given : {};
  let nullable = false;
  for (let hop = 0; hop < MAX_HOPS; hop++) {
    const next = resolveOnce(schema, root, samples, steps);
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

function resolveOnce(
  schema: JsonObject,
  root: JsonObject,
  samples: unknown[],
  steps: StepBudget,
): FormSchema | undefined {
  if (schema.$ref !== undefined) return mergeInner(schema, "$ref", resolveReference(root, schema.$ref));
  if (Array.isArray(schema.allOf) && schema.allOf.length === 1)
    return mergeInner(schema, "allOf", schema.allOf[0]);
  for (const keyword of ["anyOf", "oneOf"]) {
    const options = schema[keyword];
    if (!Array.isArray(options) || constantOptions(options)) continue;
    const others = options.filter((option) => !isNullSchema(option));
    const [only] =
      others.length === 1 ? others : others.filter((option) => accepts(option, root, samples, steps));
    return { ...mergeInner(schema, keyword, only), nullable: others.length < options.length };
  }
  return undefined;
}

/** Keywords next to a reference, such as a description, are merged into its target. */
function mergeInner(outer: JsonObject, keyword: string, inner: unknown): FormSchema {
  const { [keyword]: _, ...siblings } = outer;
  return { schema: { ...(isObject(inner) ? inner : {}), ...siblings }, nullable: false };
}

function accepts(option: unknown, root: JsonObject, samples: unknown[], steps: StepBudget): boolean {
  const given = samples.filter((sample) => sample !== undefined && sample !== null);
  return given.length > 0 && given.every((sample) => checkWithin(steps, option, sample, root).length === 0);
}

/** Alternatives of one constant each are a choice. */
function constantOptions(options: unknown): Choices | undefined {
  if (!Array.isArray(options) || options.length === 0) return undefined;
  if (!options.every((option) => isObject(option) && Object.hasOwn(option, "const"))) return undefined;
  const constants = options as JsonObject[];
  const titles = constants.map(({ title }) => (typeof title === "string" ? title : ""));
  return {
    choices: constants.map((option) => option.const),
    ...(titles.every(Boolean) ? { choiceTitles: titles } : {}),
  };
}

export interface Choices {
  choices: unknown[];
  choiceTitles?: string[];
}

export function choicesOf(schema: JsonObject): Choices | undefined {
  const found = Array.isArray(schema.enum)
    ? { choices: schema.enum }
    : (constantOptions(schema.anyOf) ?? constantOptions(schema.oneOf));
  if (!found || found.choices.length === 0 || found.choices.length > MAX_CHOICES) return undefined;
  return found.choices.every((option) => typeof option !== "object" || option === null) ? found : undefined;
}
