import * as messages from "./messages";

/** JSON values and pointers into them; `undefined` means absent. */
export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function joinPointer(parent: string, name: string | number): string {
  return `${parent}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

export function splitPointer(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
}

export function valueAt(value: unknown, pointer: string): unknown {
  return splitPointer(pointer).reduce(readMember, value);
}

export function readMember(value: unknown, name: string): unknown {
  if (Array.isArray(value))
    return /^(0|[1-9]\d*)$/.test(name) ? (value as unknown[])[Number(name)] : undefined;
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** A copy with another value at the pointer, or without it; the parent must exist. */
export function putValue(value: unknown, pointer: string, inner: unknown): unknown {
  const [first, ...rest] = splitPointer(pointer);
  if (first === undefined) return inner;
  const next = putValue(readMember(value, first), rest.reduce<string>(joinPointer, ""), inner);
  if (Array.isArray(value))
    return value.map((item: unknown, index) => (index === Number(first) ? next : item));
  if (!isObject(value)) return value;
  const others = Object.entries(value).filter(([name]) => name !== first || next !== undefined);
  const known = Object.hasOwn(value, first) || next === undefined;
  const members = others.map(([name, old]): [string, unknown] => [name, name === first ? next : old]);
  return makeObject(known ? members : [...members, [first, next]]);
}

/** By value, ignoring the order of members. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, index) => sameValue(item, b[index]));
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && sameValue(a[name], b[name]))
  );
}

/** Number of values, including nested ones and itself. */
export function countValues(value: unknown): number {
  const inner = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
  return inner.reduce<number>((sum, each) => sum + countValues(each), 1);
}

/** An object from its members; a member may be named `__proto__`. */
export function makeObject(members: Iterable<readonly [string, unknown]>): JsonObject {
  return Object.fromEntries(members);
}

/** One difference between the arguments; `before` is undefined for an added value, `after` for a removed one. */
export interface ValueChange {
  pointer: string;
  before: unknown;
  after: unknown;
}

/** In document order. Lists are compared from both ends, so that a new first item is one change. */
export function diffValues(before: unknown, after: unknown, pointer = ""): ValueChange[] {
  if (sameValue(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after)) return diffLists(before, after, pointer);
  if (isObject(before) && isObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].flatMap((name) =>
      diffValues(ownValue(before, name), ownValue(after, name), joinPointer(pointer, name)),
    );
  }
  return [{ pointer, before, after }];
}

/** The label for a number of changes. */
export function labelCount(changes: readonly ValueChange[]): string {
  return messages.changeCount(changes.length);
}

function diffLists(before: unknown[], after: unknown[], pointer: string): ValueChange[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && sameValue(before[head], after[head])) head++;
  let tail = 0;
  while (tail < shorter - head && sameValue(before[before.length - 1 - tail], after[after.length - 1 - tail]))
    tail++;
  const [removed, added] = [before.slice(head, before.length - tail), after.slice(head, after.length - tail)];
  return Array.from({ length: Math.max(removed.length, added.length) }, (_, index) =>
    diffValues(removed[index], added[index], joinPointer(pointer, head + index)),
  ).flat();
}

function ownValue(members: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}
