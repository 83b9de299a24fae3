import { isObject, same, step } from "./values";

/** One place where the arguments differ; `undefined` before is what was added, after what was removed. */
export interface Change {
  pointer: string;
  before: unknown;
  after: unknown;
}

/** In document order. Lists are compared from both ends, so that one more item in front is one change. */
export function changes(before: unknown, after: unknown, pointer = ""): Change[] {
  if (same(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after)) return ofLists(before, after, pointer);
  if (isObject(before) && isObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].flatMap((name) => changes(own(before, name), own(after, name), step(pointer, name)));
  }
  return [{ pointer, before, after }];
}

/** What a button says that sends them. */
export function counted(changes: readonly Change[]): string {
  return changes.length === 1 ? "1 change" : `${changes.length.toLocaleString("en")} changes`;
}

function ofLists(before: unknown[], after: unknown[], pointer: string): Change[] {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && same(before[head], after[head])) head++;
  let tail = 0;
  while (tail < shorter - head && same(before[before.length - 1 - tail], after[after.length - 1 - tail]))
    tail++;
  const [gone, come] = [before.slice(head, before.length - tail), after.slice(head, after.length - tail)];
  return Array.from({ length: Math.max(gone.length, come.length) }, (_, index) =>
    changes(gone[index], come[index], step(pointer, head + index)),
  ).flat();
}

function own(members: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}
