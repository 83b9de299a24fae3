import { parse, write } from "../api/json";
import type { Plan } from "./plan";
import { isObject, made, type Members } from "./values";

/** The values as the form holds them: every leaf is JSON. */
export function toForm(plan: Plan, value: unknown): unknown {
  if (value === undefined) return undefined;
  if (plan.properties && isObject(value)) {
    const known = Object.entries(value).filter(
      ([name]) => plan.properties && Object.hasOwn(plan.properties, name),
    );
    return made(known.map(([name, inner]) => [name, toForm(plan.properties?.[name] as Plan, inner)]));
  }
  if (plan.items && Array.isArray(value)) return value.map((item) => toForm(plan.items as Plan, item));
  return write(value);
}

/** Back again; what was taken away is not there, and a new item of a list is as empty as it can be. */
export function fromForm(plan: Plan, held: unknown): unknown {
  if (plan.properties) return isObject(held) ? members(plan.properties, held) : undefined;
  if (plan.items)
    return Array.isArray(held)
      ? held.map((item) => fromForm(plan.items as Plan, item) ?? blank(plan.items as Plan))
      : undefined;
  return typeof held === "string" ? parse(held) : undefined;
}

export function blank(plan: Plan): unknown {
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

function members(plans: Record<string, Plan>, held: Members): Members {
  const all = Object.entries(held).map(([name, inner]): [string, unknown] => {
    const plan = Object.hasOwn(plans, name) ? plans[name] : undefined;
    return [name, plan && fromForm(plan, inner)];
  });
  return made(all.filter(([, value]) => value !== undefined));
}
