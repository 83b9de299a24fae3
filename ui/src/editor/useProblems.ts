import { useMemo, useRef } from "react";
import type { ApprovalSnapshot } from "../api/approvals";
import type { ApiError } from "../api/client";
import { stringifyJson } from "../api/json";
import { checkSchema, type SchemaProblem } from "./checkSchema";
import { generalizePointer, makeFormPlan, TooManyFields, type FormPlan } from "./formPlan";
import { useStableValue } from "./hooks";
import { countValues, isObject, sameValue, valueAt } from "./values";

const MOST_TEXT = 60_000; // characters of arguments beyond which a form is slow to type in

/** The form for the draft, what is wrong with it as far as the browser can tell, and what the server said of it. */
export function useProblems(approval: ApprovalSnapshot, value: unknown, refused: ApiError | null) {
  const { args, schema, declared, card } = approval;
  const { said, sent } = useServerProblems(refused, value);
  const secrets = useMemo(
    () => card.fields.filter((field) => field.type === "secret").map((field) => field.pointer),
    [card],
  );
  const plan = useMemo(
    () => planWithinLimits(schema, [args, value], secrets, declared),
    [schema, args, value, secrets, declared],
  );
  const found = useMemo(
    () =>
      distinct([
        ...shape(value),
        ...moved(args, value, secrets),
        ...checkSchema(schema ?? {}, value),
        ...said,
      ]),
    [schema, args, value, secrets, said],
  );
  const problems = useStableValue(found);
  const unplaced = problems.filter(({ pointer }) => !plan || !hasField(plan, pointer));
  return { plan, problems, unplaced, sent };
}

/** What the server said of what was `sent`, as long as it holds. */
export function useServerProblems(refused: ApiError | null, value: unknown) {
  const sent = useRef<unknown>(undefined);
  // eslint-disable-next-line react-hooks/exhaustive-deps -- what had been sent when this refusal came
  const refusedFor = useMemo(() => sent.current, [refused]);
  const said = useMemo(
    () =>
      (refused?.problems ?? [])
        .filter(({ pointer }) => stands(pointer, refusedFor, value))
        .map(placed(value)),
    [refused, refusedFor, value],
  );
  return { said, sent };
}

/** A form for these values, unless it would be too slow or too long to be of use. */
export function planWithinLimits(
  schema: unknown,
  samples: unknown[],
  secrets: string[],
  declared = false,
): FormPlan | null {
  if (samples.some((sample) => countValues(sample) > 1_000 || stringifyJson(sample).length > MOST_TEXT))
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

/** What the server said of a value holds until that value is another one. */
function stands(pointer: string, sent: unknown, value: unknown): boolean {
  const [then, now] = [valueAt(sent, pointer), valueAt(value, pointer)];
  return then === undefined && now === undefined ? sameValue(sent, value) : sameValue(then, now);
}

/** `/args` is how the server calls all of them, where there is no argument of that name. */
function placed(value: unknown) {
  return ({ pointer, message }: SchemaProblem): SchemaProblem =>
    pointer === "/args" && valueAt(value, pointer) === undefined
      ? { pointer: "", message }
      : { pointer, message };
}

function shape(value: unknown): SchemaProblem[] {
  return isObject(value) ? [] : [{ pointer: "", message: "must be an object: { … }" }];
}

/** Secrets go back as they came; the server would take another text for a new secret. */
function moved(before: unknown, after: unknown, secrets: string[]): SchemaProblem[] {
  return secrets
    .filter((pointer) => !sameValue(valueAt(before, pointer), valueAt(after, pointer)))
    .map((pointer) => ({ pointer, message: "is locked; restore its original value" }));
}

export function hasField(plan: FormPlan, pointer: string): boolean {
  const names = pointer.split("/").slice(1);
  let place: FormPlan | undefined = plan;
  for (const escaped of names) {
    const name = escaped.replaceAll("~1", "/").replaceAll("~0", "~");
    const next: FormPlan | undefined =
      place?.items ??
      (place?.properties && Object.hasOwn(place.properties, name) ? place.properties[name] : undefined);
    if (!next) return false;
    place = next;
  }
  return names.length > 0;
}

function distinct(problems: SchemaProblem[]): SchemaProblem[] {
  return [...new Map(problems.map((each) => [`${each.pointer}\n${each.message}`, each])).values()];
}
