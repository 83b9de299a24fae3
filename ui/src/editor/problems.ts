import { useMemo, useRef } from "react";
import type { Read } from "../api/approvals";
import type { Refused } from "../api/client";
import { write } from "../api/json";
import { check, type Problem } from "./check";
import { anyItem, planOf, TooMany, type Plan } from "./plan";
import { useSteady } from "./steady";
import { at, count, isObject, same } from "./values";

const MOST_TEXT = 60_000; // characters of arguments beyond which a form is slow to type in

/** The form for the draft, what is wrong with it as far as the browser can tell, and what the server said of it. */
export function useProblems(approval: Read, value: unknown, refused: Refused | null) {
  const { args, schema, declared, card } = approval;
  const { said, sent } = useSaid(refused, value);
  const secrets = useMemo(
    () => card.fields.filter((field) => field.type === "secret").map((field) => field.pointer),
    [card],
  );
  const plan = useMemo(
    () => planFor(schema, [args, value], secrets, declared),
    [schema, args, value, secrets, declared],
  );
  const found = useMemo(
    () => distinct([...shape(value), ...moved(args, value, secrets), ...check(schema ?? {}, value), ...said]),
    [schema, args, value, secrets, said],
  );
  const problems = useSteady(found);
  const unplaced = problems.filter(({ pointer }) => !plan || !hasField(plan, pointer));
  return { plan, problems, unplaced, sent };
}

/** What the server said of what was `sent`, as long as it holds. */
export function useSaid(refused: Refused | null, value: unknown) {
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
export function planFor(
  schema: unknown,
  samples: unknown[],
  secrets: string[],
  declared = false,
): Plan | null {
  if (samples.some((sample) => count(sample) > 1_000 || write(sample).length > MOST_TEXT)) return null;
  try {
    const locked = new Set(samples.flatMap((sample) => secrets.map((pointer) => anyItem(sample, pointer))));
    return planOf(schema, samples, locked, declared);
  } catch (error) {
    if (error instanceof TooMany) return null;
    throw error;
  }
}

/** What the server said of a value holds until that value is another one. */
function stands(pointer: string, sent: unknown, value: unknown): boolean {
  const [then, now] = [at(sent, pointer), at(value, pointer)];
  return then === undefined && now === undefined ? same(sent, value) : same(then, now);
}

/** `/args` is how the server calls all of them, where there is no argument of that name. */
function placed(value: unknown) {
  return ({ pointer, message }: Problem): Problem =>
    pointer === "/args" && at(value, pointer) === undefined ? { pointer: "", message } : { pointer, message };
}

function shape(value: unknown): Problem[] {
  return isObject(value) ? [] : [{ pointer: "", message: "are an object: { … }" }];
}

/** Secrets go back as they came; the server would take another text for a new secret. */
function moved(before: unknown, after: unknown, secrets: string[]): Problem[] {
  return secrets
    .filter((pointer) => !same(at(before, pointer), at(after, pointer)))
    .map((pointer) => ({ pointer, message: "is locked; put it back as it was" }));
}

export function hasField(plan: Plan, pointer: string): boolean {
  const names = pointer.split("/").slice(1);
  let place: Plan | undefined = plan;
  for (const escaped of names) {
    const name = escaped.replaceAll("~1", "/").replaceAll("~0", "~");
    const next: Plan | undefined =
      place?.items ??
      (place?.properties && Object.hasOwn(place.properties, name) ? place.properties[name] : undefined);
    if (!next) return false;
    place = next;
  }
  return names.length > 0;
}

function distinct(problems: Problem[]): Problem[] {
  return [...new Map(problems.map((each) => [`${each.pointer}\n${each.message}`, each])).values()];
}
