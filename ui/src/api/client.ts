import { parse, write } from "./json";
import { signedInAgain } from "./recent";
import type { components, paths } from "./schema";

export type Shapes = components["schemas"];
type Method = "get" | "post" | "put" | "delete";
type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths];
type Operation<M extends Method, P extends PathOf<M>> = paths[P][M];
type Answer<O> = O extends { responses: { 200: { content: { "application/json": infer T } } } }
  ? T
  : O extends { responses: { 201: { content: { "application/json": infer T } } } }
    ? T
    : unknown;
type Query<O> = O extends { parameters: { query?: infer Q } } ? Q : never;
type Body<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? B : unknown;
type Values = Record<string, string | number>;

export interface Given<O> {
  path?: Values;
  query?: Query<O>;
  body?: Body<O>;
  /** A body as it is, such as YAML, with its kind. */
  raw?: { text: string; kind: string };
  headers?: Record<string, string>;
  /** The same for every try of one intention: a second try then changes nothing. */
  once?: string;
  signal?: AbortSignal;
}

/** What the server refused, in its own words; `status` 0 means that it was not reached. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Record<string, unknown> = {},
  ) {
    super(message);
    this.name = "Refused";
  }

  /** What is wrong where, for a form. */
  get problems(): { pointer: string; message: string }[] {
    const found = this.details.problems;
    return Array.isArray(found) ? (found as { pointer: string; message: string }[]) : [];
  }
}

export async function call<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  given: Given<Operation<M, P>> = {},
): Promise<Answer<Operation<M, P>>> {
  const plain: Given<unknown> = given as unknown as Given<unknown>; // of all routes at once it is too much for the compiler
  const answer = await send(
    method,
    address(path as string, plain.path, plain.query as Values | undefined),
    plain,
  );
  const text = await answer.text();
  const isJson = answer.headers.get("content-type")?.includes("json");
  return (isJson && text ? parse(text) : text) as Answer<Operation<M, P>>;
}

/** The answer itself, for its headers or as a stream; refusals are thrown. */
export async function send(method: string, url: string, given: Given<unknown> = {}): Promise<Response> {
  try {
    return await sendOnce(method, url, given);
  } catch (error) {
    const wanted = error instanceof Refused && error.code === "recent_sign_in_required";
    if (!wanted || !(await signedInAgain())) throw error;
    // It was answered, so that another try is another intention.
    return await sendOnce(method, url, given.once ? { ...given, once: crypto.randomUUID() } : given);
  }
}

async function sendOnce(method: string, url: string, given: Given<unknown>): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(url, {
      method: method.toUpperCase(),
      headers: headersOf(given),
      body: given.raw ? given.raw.text : given.body === undefined ? undefined : write(given.body),
      signal: given.signal,
      credentials: "same-origin",
    });
  } catch (error) {
    if (given.signal?.aborted) throw error;
    throw new Refused(
      0,
      "unreachable",
      "Interlock cannot be reached. Check your connection, then try again.",
    );
  }
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

export function address(path: string, values: Values = {}, query: Values = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(values[name] ?? "")),
  );
  const asked = Object.entries(query).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  const search = new URLSearchParams(asked.map(([name, value]) => [name, String(value)])).toString();
  return search ? `${filled}?${search}` : filled;
}

function headersOf(given: Given<unknown>): Record<string, string> {
  const headers: Record<string, string> = { accept: "application/json", ...given.headers };
  if (given.raw) headers["content-type"] = given.raw.kind;
  else if (given.body !== undefined) headers["content-type"] = "application/json";
  if (given.once) headers["idempotency-key"] = given.once;
  return headers;
}

async function refusal(answer: Response): Promise<Refused> {
  try {
    const { error, message, ...details } = parse(await answer.text()) as Record<string, unknown>;
    return new Refused(answer.status, String(error), String(message), details);
  } catch {
    return new Refused(
      answer.status,
      "broken",
      `The server answered with an error (${answer.status}). Try again.`,
    );
  }
}
