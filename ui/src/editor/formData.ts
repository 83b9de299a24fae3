import { parseJson, stringifyJson } from "../api/json";
import type { FormPlan } from "./formPlan";
import { isObject, makeObject, type JsonObject } from "./values";

/** The value as form data: every leaf is a JSON string. */
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

/** The inverse; removed values are absent, and a new list item gets an empty value. */
export function fromFormData(plan: FormPlan, formValue: unknown): unknown {
  if (plan.properties) return isObject(formValue) ? members(plan.properties, formValue) : undefined;
  if (plan.items)
    return Array.isArray(formValue)
      ? formValue.map(
          (item) => fromFormData(plan.items as FormPlan, item) ?? blankValue(plan.items as FormPlan),
        )
      : undefined;
  return typeof formValue === "string" ? parseJson(formValue) : undefined;
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
    case "Time":
    case "Number":
      return "";
    default:
      return null;
  }
}

function members(plans: Record<string, FormPlan>, formValue: JsonObject): JsonObject {
  const all = Object.entries(formValue).map(([name, inner]): [string, unknown] => {
    const plan = Object.hasOwn(plans, name) ? plans[name] : undefined;
    return [name, plan && fromFormData(plan, inner)];
  });
  return makeObject(all.filter(([, value]) => value !== undefined));
}
