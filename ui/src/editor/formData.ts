import { parseJson, stringifyJson } from "../api/json";
import type { FormPlan } from "./formPlan";
import { isObject, makeObject, type JsonObject } from "./values";

/** The values as the form holds them: every leaf is JSON. */
export function toFormData(plan: FormPlan, value: unknown): unknown {
  if (value === undefined) return undefined;
  if (plan.properties && isObject(value)) {
    const known = Object.entries(value).filter(
      ([name]) => plan.properties && Object.hasOwn(plan.properties, name),
    );
    return makeObject(
      known.map(([name, inner]) => [name, toFormData(plan.properties?.[name] as FormPlan, inner)]),
    );
  }
  if (plan.items && Array.isArray(value))
    return value.map((item) => toFormData(plan.items as FormPlan, item));
  return stringifyJson(value);
}

/** Back again; what was taken away is not there, and a new item of a list is as empty as it can be. */
export function fromFormData(plan: FormPlan, held: unknown): unknown {
  if (plan.properties) return isObject(held) ? members(plan.properties, held) : undefined;
  if (plan.items)
    return Array.isArray(held)
      ? held.map((item) => fromFormData(plan.items as FormPlan, item) ?? blankValue(plan.items as FormPlan))
      : undefined;
  return typeof held === "string" ? parseJson(held) : undefined;
}

export function blankValue(plan: FormPlan): unknown {
  if (plan.properties) return {};
  if (plan.items) return [];
  switch (plan.$id) {
    case "Flag":
      return false;
    case "Choice":
      return plan.choices?.[0] ?? null;
    case "Text":
    case "Number":
      return "";
    default:
      return null;
  }
}

function members(plans: Record<string, FormPlan>, held: JsonObject): JsonObject {
  const all = Object.entries(held).map(([name, inner]): [string, unknown] => {
    const plan = Object.hasOwn(plans, name) ? plans[name] : undefined;
    return [name, plan && fromFormData(plan, inner)];
  });
  return makeObject(all.filter(([, value]) => value !== undefined));
}
