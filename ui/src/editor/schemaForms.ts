import { resolveReference } from "../card/schema";
import { checkWithin, isNullSchema, takeStep, type StepBudget } from "./checkSchema";
import type { FormChoice } from "./formPlan";
import * as messages from "./messages";
import { isObject, makeObject, type JsonObject } from "./values";

const MAX_FORMS = 30;
const MAX_DEPTH = 4; // of a blank value

interface PickedForm {
  schema: JsonObject;
  samples: unknown[];
  title: string;
  description: string;
  forms: FormChoice;
}

/**
 * Which of several forms the value has, and the others that it could be switched to. Undefined if there are no
 * several, or if the items of a list have different ones.
 */
export function pickForm(
  given: unknown,
  root: JsonObject,
  samples: readonly unknown[],
  isShared: boolean,
  steps: StepBudget,
): PickedForm | undefined {
  const schema = isObject(given) && given.$ref !== undefined ? resolveReference(root, given.$ref) : given;
  const options = isObject(schema) ? optionsOf(schema, root) : undefined;
  if (!isObject(schema) || !options) return undefined;
  const present = samples.filter((sample) => sample !== undefined);
  const picks = present.map((sample) => bestOption(options, sample, root, steps));
  const picked = picks.at(-1) ?? -1;
  if (isShared || picked < 0) return undefined;
  return {
    schema: options[picked] as JsonObject,
    samples: present.filter((_, at) => picks[at] === picked),
    title: textOf(schema.title),
    description: textOf(schema.description),
    forms: {
      options: options.map((option) => ({ label: labelOf(option), blank: blankOf(option, root, 0, steps) })),
      picked,
      pickedBefore: samples[0] === undefined ? -1 : (picks[0] ?? -1),
    },
  };
}

/** At least two forms besides null; alternatives of one constant each are a choice, not forms. */
function optionsOf(schema: JsonObject, root: JsonObject): JsonObject[] | undefined {
  const found = [schema.oneOf, schema.anyOf].find(Array.isArray) as unknown[] | undefined;
  if (!found || found.length > MAX_FORMS) return undefined;
  const options = found.map((option) =>
    isObject(option) && option.$ref !== undefined ? resolveReference(root, option.$ref) : option,
  );
  if (!options.every(isObject) || options.every((option) => Object.hasOwn(option, "const"))) return undefined;
  return options.filter((option) => !isNullSchema(option)).length > 1 ? options : undefined;
}

/** The form with the fewest problems; what is only missing yet counts least. */
function bestOption(
  options: readonly JsonObject[],
  value: unknown,
  root: JsonObject,
  steps: StepBudget,
): number {
  const scores = options.map((option) =>
    checkWithin(steps, option, value, root).reduce(
      (sum, { pointer, message }) => sum + weigh(pointer, message),
      0,
    ),
  );
  return scores.indexOf(Math.min(...scores));
}

function weigh(pointer: string, message: string): number {
  if (pointer === "") return 1_000; // another type
  if (message.startsWith(messages.mustBeOneOf("")) || /^must be ["\d-]/.test(message)) return 100; // another constant
  if (message === messages.isNotKnownHere) return 30;
  return message === messages.isRequired ? 10 : 1;
}

function labelOf(option: JsonObject): string {
  if (textOf(option.title)) return textOf(option.title);
  const constants = Object.values(membersOf(option)).flatMap((member) =>
    isObject(member) && typeof member.const === "string" ? [member.const] : [],
  );
  if (constants[0]) return constants[0];
  const required = Array.isArray(option.required) ? option.required.map(String) : [];
  const type = messages.TYPE_LABELS[textOf(option.type)] ?? messages.other;
  return required.length ? messages.typeWithRequired(type, required.join(", ")) : type;
}

/** What a value of this form begins as: constants, and required members that are empty. */
function blankOf(given: unknown, root: JsonObject, depth: number, steps: StepBudget): unknown {
  takeStep(steps);
  const resolved = isObject(given) && given.$ref !== undefined ? resolveReference(root, given.$ref) : given;
  const schema = isObject(resolved) ? resolved : {};
  if (Object.hasOwn(schema, "const")) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0] as unknown;
  switch (schema.type ?? (schema.properties ? "object" : "")) {
    case "object":
      return depth > MAX_DEPTH ? {} : blankMembers(schema, root, depth, steps);
    case "array":
      return [];
    case "boolean":
      return false;
    case "null":
      return null;
    default:
      return "";
  }
}

function blankMembers(schema: JsonObject, root: JsonObject, depth: number, steps: StepBudget): JsonObject {
  const members = membersOf(schema);
  const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
  const names = Object.keys(members).filter((name) => required.includes(name));
  return makeObject(names.map((name) => [name, blankOf(members[name], root, depth + 1, steps)]));
}

function membersOf(schema: JsonObject): JsonObject {
  return isObject(schema.properties) ? schema.properties : {};
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}
