import { isObject, member, steps, type Members } from "./values";

/** What `#/…` points to; nothing where it leads elsewhere, or where parts have addresses of their own. */
export function followed(root: Members, reference: unknown): unknown {
  if (reference === "#") return root;
  if (typeof reference !== "string" || !reference.startsWith("#/") || hasOwnAddresses(root)) return undefined;
  try {
    return steps(decodeURIComponent(reference.slice(1))).reduce(member, root as unknown);
  } catch {
    return undefined;
  }
}

export function isNull(option: unknown): boolean {
  return isObject(option) && option.type === "null";
}

const known = new WeakMap<Members, boolean>();

function hasOwnAddresses(root: Members): boolean {
  let found = known.get(root);
  if (found === undefined) known.set(root, (found = Object.values(root).some(addressed)));
  return found;
}

function addressed(part: unknown): boolean {
  if (Array.isArray(part)) return part.some(addressed);
  if (!isObject(part)) return false;
  return typeof part.$id === "string" || typeof part.id === "string" || Object.values(part).some(addressed);
}
