import { useMemo, useRef } from "react";
import type { ApprovalSnapshot } from "../api/approvals";
import type { ApiError } from "../api/client";
import { stringifyJson } from "../api/json";
import { checkSchema, toPlainWords, type SchemaProblem } from "./checkSchema";
import { generalizePointer, makeFormPlan, TooManyFields, type FormPlan } from "./formPlan";
import { useStableValue } from "./hooks";
import * as messages from "./messages";
import { countValues, isObject, sameValue, valueAt } from "./values";

const MAX_TEXT = 60_000; // characters of arguments beyond which a form is slow

/** The form plan of the draft, and the problems found by the browser and by the server. */
export function useProblems(approval: ApprovalSnapshot, value: unknown, refused: ApiError | null) {
  const { args, schema, declared, card } = approval;
  const { serverProblems, sent } = useServerProblems(refused, value);
  const secrets = useMemo(
    () => card.fields.filter((field) => field.type === "secret").map((field) => field.pointer),
    [card],
  );
  const plan = useMemo(
    () => planWithinLimits(schema, [args, value], secrets, declared),
    [schema, args, value, secrets, declared],
  );
  const allProblems = useMemo(
    () =>
      distinct([
        ...checkShape(value),
        ...checkSecrets(args, value, secrets),
        ...checkSchema(schema ?? {}, value),
        ...serverProblems,
      ]),
    [schema, args, value, secrets, serverProblems],
  );
  const problems = useStableValue(allProblems);
  const unplaced = problems.filter(({ pointer }) => !plan || !hasField(plan, pointer));
  return { plan, problems, unplaced, sent };
}

/** The server's problems with the `sent` value, as long as they apply. */
export function useServerProblems(refused: ApiError | null, value: unknown) {
  const sent = useRef<unknown>(undefined);
  // eslint-disable-next-line react-hooks/exhaustive-deps -- what had been sent when this refusal came
  const refusedFor = useMemo(() => sent.current, [refused]);
  const serverProblems = useMemo(
    () =>
      (refused?.problems ?? [])
        .filter(({ pointer }) => isUnchanged(pointer, refusedFor, value))
        .map(toArgumentPointer(value)),
    [refused, refusedFor, value],
  );
  return { serverProblems, sent };
}

/** A form plan, or null if the form would be too slow or too long. */
export function planWithinLimits(
  schema: unknown,
  samples: unknown[],
  secrets: string[],
  declared = false,
): FormPlan | null {
  if (samples.some((sample) => countValues(sample) > 1_000 || stringifyJson(sample).length > MAX_TEXT))
    return null;
  try {
    const locked = new Set(
      samples.flatMap((sample) => secrets.map((pointer) => generalizePointer(sample, pointer))),
    );
    return makeFormPlan(schema, samples, locked, declared);
  } catch (error) {
    if (error instanceof TooManyFields) return null;
    throw error;
  }
}

/** A server problem applies until its value changes. */
function isUnchanged(pointer: string, sent: unknown, value: unknown): boolean {
  const [then, now] = [valueAt(sent, pointer), valueAt(value, pointer)];
  return then === undefined && now === undefined ? sameValue(sent, value) : sameValue(then, now);
}

/** The server names the arguments as a whole `/args`, unless there is an argument of that name. */
function toArgumentPointer(value: unknown) {
  return ({ pointer, message }: SchemaProblem): SchemaProblem =>
    pointer === "/args" && valueAt(value, pointer) === undefined
      ? { pointer: "", message }
      : { pointer, message };
}

function checkShape(value: unknown): SchemaProblem[] {
  return isObject(value) ? [] : [{ pointer: "", message: messages.mustBeObject }];
}

/** Secrets must be sent back unchanged; the server would take another value for a new secret. */
function checkSecrets(before: unknown, after: unknown, secrets: string[]): SchemaProblem[] {
  return secrets
    .filter((pointer) => !sameValue(valueAt(before, pointer), valueAt(after, pointer)))
    .map((pointer) => ({ pointer, message: messages.isLocked }));
}

export function hasField(plan: FormPlan, pointer: string): boolean {
  const names = pointer.split("/").slice(1);
  let current: FormPlan | undefined = plan;
  for (const escaped of names) {
    const name = escaped.replaceAll("~1", "/").replaceAll("~0", "~");
    const next: FormPlan | undefined =
      current?.items ??
      (current?.properties && Object.hasOwn(current.properties, name) ? current.properties[name] : undefined);
    if (!next) return false;
    current = next;
  }
  return names.length > 0;
}

function distinct(problems: SchemaProblem[]): SchemaProblem[] {
  return [
    ...new Map(problems.map(toPlainWords).map((each) => [`${each.pointer}\n${each.message}`, each])).values(),
  ];
}
