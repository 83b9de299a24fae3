import { parseJson, stringifyJson } from "./json";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
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

export interface RequestOptions<O> {
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
export class ApiError extends Error {
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

export async function callApi<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  given: RequestOptions<Operation<M, P>> = {},
): Promise<Answer<Operation<M, P>>> {
  const plain: RequestOptions<unknown> = given as unknown as RequestOptions<unknown>; // of all routes at once it is too much for the compiler
  const answer = await sendRequest(
    method,
    buildUrl(path as string, plain.path, plain.query as Values | undefined),
    plain,
  );
  const text = await answer.text();
  const isJson = answer.headers.get("content-type")?.includes("json");
  return (isJson && text ? parseJson(text) : text) as Answer<Operation<M, P>>;
}

/** The answer itself, for its headers or as a stream; refusals are thrown. */
export async function sendRequest(
  method: string,
  url: string,
  given: RequestOptions<unknown> = {},
): Promise<Response> {
  try {
    return await sendOnce(method, url, given);
  } catch (error) {
    const wanted = error instanceof ApiError && error.code === "recent_sign_in_required";
    if (!wanted || !(await promptSignIn())) throw error;
    // It was answered, so that another try is another intention.
    return await sendOnce(method, url, given.once ? { ...given, once: crypto.randomUUID() } : given);
  }
}

async function sendOnce(method: string, url: string, given: RequestOptions<unknown>): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(url, {
      method: method.toUpperCase(),
      headers: headersOf(given),
      body: given.raw ? given.raw.text : given.body === undefined ? undefined : stringifyJson(given.body),
      signal: given.signal,
      credentials: "same-origin",
    });
  } catch (error) {
    if (given.signal?.aborted) throw error;
    throw new ApiError(
      0,
      "unreachable",
      "Interlock cannot be reached. Check your connection, then try again.",
    );
  }
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

export function buildUrl(path: string, values: Values = {}, query: Values = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(values[name] ?? "")),
  );
  const asked = Object.entries(query).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  const search = new URLSearchParams(asked.map(([name, value]) => [name, String(value)])).toString();
  return search ? `${filled}?${search}` : filled;
}

function headersOf(given: RequestOptions<unknown>): Record<string, string> {
  const headers: Record<string, string> = { accept: "application/json", ...given.headers };
  if (given.raw) headers["content-type"] = given.raw.kind;
  else if (given.body !== undefined) headers["content-type"] = "application/json";
  if (given.once) headers["idempotency-key"] = given.once;
  return headers;
}

async function refusal(answer: Response): Promise<ApiError> {
  try {
    const { error, message, ...details } = parseJson(await answer.text()) as Record<string, unknown>;
    return new ApiError(answer.status, String(error), String(message), details);
  } catch {
    return new ApiError(
      answer.status,
      "broken",
      `The server answered with an error (${answer.status}). Try again.`,
    );
  }
}

/** What asks the person to sign in again; true once they did. */
type Ask = () => Promise<boolean>;

let ask: Ask | null = null;

/** The page says how it asks; the answer takes it back. */
export function setSignInPrompt(how: Ask): () => void {
  ask = how;
  return () => {
    if (ask === how) ask = null;
  };
}

/** Whether somebody signed in again, so that what was refused can be repeated. */
async function promptSignIn(): Promise<boolean> {
  return ask ? await ask() : false;
}
