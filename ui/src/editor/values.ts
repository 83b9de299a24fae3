/** JSON values and the places in them; `undefined` is what is not there. */
export type Members = Record<string, unknown>;

export function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function step(parent: string, name: string | number): string {
  return `${parent}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

export function steps(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
}

export function at(value: unknown, pointer: string): unknown {
  return steps(pointer).reduce(member, value);
}

export function member(value: unknown, name: string): unknown {
  if (Array.isArray(value))
    return /^(0|[1-9]\d*)$/.test(name) ? (value as unknown[])[Number(name)] : undefined;
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** A copy with another value at the place, or without one there; what is around it has to be there. */
export function put(value: unknown, pointer: string, inner: unknown): unknown {
  const [first, ...rest] = steps(pointer);
  if (first === undefined) return inner;
  const next = put(member(value, first), rest.reduce<string>(step, ""), inner);
  if (Array.isArray(value))
    return value.map((item: unknown, index) => (index === Number(first) ? next : item));
  if (!isObject(value)) return value;
  const others = Object.entries(value).filter(([name]) => name !== first || next !== undefined);
  const known = Object.hasOwn(value, first) || next === undefined;
  const members = others.map(([name, old]): [string, unknown] => [name, name === first ? next : old]);
  return made(known ? members : [...members, [first, next]]);
}

/** By value; the order of members does not count. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, index) => same(item, b[index]));
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && same(a[name], b[name]))
  );
}

/** How many values are in it, itself included. */
export function count(value: unknown): number {
  const inner = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
  return inner.reduce<number>((sum, each) => sum + count(each), 1);
}

/** An object from its members; a member may be called `__proto__`. */
export function made(members: Iterable<readonly [string, unknown]>): Members {
  return Object.fromEntries(members);
}
