/** Reads what JSON Schemas say; never checks a value against one. */
type JsonObject = Record<string, unknown>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The target of a `#/…` reference; undefined for other references, or if parts of the schema have their own ids. */
export function resolveReference(root: JsonObject, reference: unknown): unknown {
  if (reference === "#") return root;
  if (typeof reference !== "string" || !reference.startsWith("#/") || hasOwnAddresses(root)) return undefined;
  try {
    const names = decodeURIComponent(reference.slice(2)).split("/");
    return names
      .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"))
      .reduce<unknown>(readPart, root);
  } catch {
    return undefined;
  }
}

function readPart(part: unknown, name: string): unknown {
  if (Array.isArray(part)) return /^(0|[1-9]\d*)$/.test(name) ? (part as unknown[])[Number(name)] : undefined;
  return isObject(part) && Object.hasOwn(part, name) ? part[name] : undefined;
}

const addressCache = new WeakMap<JsonObject, boolean>();

function hasOwnAddresses(root: JsonObject): boolean {
  let found = addressCache.get(root);
  if (found === undefined) addressCache.set(root, (found = Object.values(root).some(hasId)));
  return found;
}

function hasId(part: unknown): boolean {
  if (Array.isArray(part)) return part.some(hasId);
  if (!isObject(part)) return false;
  return typeof part.$id === "string" || typeof part.id === "string" || Object.values(part).some(hasId);
}

const MAX_HOPS = 16;

/** Names, titles and order of the members of objects, for people; unclear schemas have none. */
export class SchemaLabels {
  constructor(private readonly root: JsonObject) {}

  /** The schema itself, behind references, `X or null`, and alternatives that `names` decide between. */
  resolve(schema: unknown, names: readonly string[] = []): JsonObject {
    let found = schema;
    let title: unknown;
    for (let hop = 0; hop < MAX_HOPS && isObject(found); hop++) {
      title ??= found.title;
      const next = this.next(found, names);
      if (next === undefined) break;
      found = next;
    }
    if (!isObject(found)) return {};
    return title === undefined ? found : { ...found, title };
  }

  /** The schema of a member of an object, or of the items of a list. */
  member(schema: JsonObject, name: string, isList: boolean, names: readonly string[]): JsonObject {
    if (isList) return this.resolve(schema.items, names);
    const members = isObject(schema.properties) ? schema.properties : {};
    return this.resolve(Object.hasOwn(members, name) ? members[name] : undefined, names);
  }

  private next(schema: JsonObject, names: readonly string[]): unknown {
    if (schema.$ref !== undefined) return resolveReference(this.root, schema.$ref);
    for (const word of ["allOf", "anyOf", "oneOf"]) {
      const options = schema[word];
      if (!Array.isArray(options)) continue;
      const others = options.filter((option) => !(isObject(option) && option.type === "null"));
      const fitting =
        others.length === 1 ? others : others.filter((option) => this.hasMembers(option, names));
      if (fitting.length === 1) return fitting[0];
    }
    return undefined;
  }

  /** Whether an object of these members could be meant. */
  private hasMembers(option: unknown, names: readonly string[]): boolean {
    const schema =
      isObject(option) && option.$ref !== undefined ? resolveReference(this.root, option.$ref) : option;
    if (!isObject(schema) || !isObject(schema.properties) || !names.length) return false;
    const members = schema.properties;
    const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
    return (
      names.every((name) => Object.hasOwn(members, name)) && required.every((name) => names.includes(name))
    );
  }
}

/** The title that a schema gives, if it has one. */
export function titleOf(schema: JsonObject): string {
  return typeof schema.title === "string" ? schema.title.trim() : "";
}

/**
 * The members in the order of the schema. Where that is the alphabet's, the order was lost on the way: then required
 * members come first, in their own order.
 */
export function memberOrder(schema: JsonObject): string[] {
  const names = isObject(schema.properties) ? Object.keys(schema.properties) : [];
  const isSorted = names.every((name, at) => at === 0 || (names[at - 1] ?? "") < name);
  if (!isSorted || !Array.isArray(schema.required)) return names;
  const required = schema.required.map(String).filter((name) => names.includes(name));
  return [...new Set([...required, ...names])];
}

/** Whether a title says no more than the name: "Due date" of `due_date`. */
export function repeatsName(title: string, name: string): boolean {
  return squeeze(title) === squeeze(name);
}

function squeeze(text: string): string {
  return text.toLowerCase().replace(/[\s_\-?]/g, "");
}
