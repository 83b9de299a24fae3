import { check } from "./check";
import { followed, isNull } from "./references";
import { isObject, type Members } from "./values";

const HOPS = 32;

/** A schema as a form needs it: references followed, `X or null` told apart, a union settled by the values. */
export interface Plain {
  schema: Members;
  nullable: boolean;
}

/** `samples` are the values that the form has to show; null is not among the alternatives that are left. */
export function plain(given: unknown, root: Members, samples: unknown[]): Plain {
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

function nearer(schema: Members, root: Members, samples: unknown[]): Plain | undefined {
  if (schema.$ref !== undefined) return inside(schema, "$ref", followed(root, schema.$ref));
  if (Array.isArray(schema.allOf) && schema.allOf.length === 1)
    return inside(schema, "allOf", schema.allOf[0]);
  for (const keyword of ["anyOf", "oneOf"]) {
    const options = schema[keyword];
    if (!Array.isArray(options) || constants(options)) continue;
    const others = options.filter((option) => !isNull(option));
    const [only] = others.length === 1 ? others : others.filter((option) => takes(option, root, samples));
    return { ...inside(schema, keyword, only), nullable: others.length < options.length };
  }
  return undefined;
}

/** What stands beside a reference, such as a description, goes with what it leads to. */
function inside(around: Members, keyword: string, inner: unknown): Plain {
  const { [keyword]: _, ...beside } = around;
  return { schema: { ...(isObject(inner) ? inner : {}), ...beside }, nullable: false };
}

function takes(option: unknown, root: Members, samples: unknown[]): boolean {
  const given = samples.filter((sample) => sample !== undefined && sample !== null);
  return given.length > 0 && given.every((sample) => check(option, sample, root).length === 0);
}

/** Alternatives that are one value each are a choice. */
export function constants(options: unknown): unknown[] | undefined {
  if (!Array.isArray(options) || options.length === 0) return undefined;
  return options.every((option) => isObject(option) && Object.hasOwn(option, "const"))
    ? options.map((option: Members) => option.const)
    : undefined;
}
