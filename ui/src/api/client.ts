import { parseJson, stringifyJson } from "./json";
import * as messages from "./messages";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
type Method = "get" | "post" | "put" | "delete";
type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths];
type Operation<M extends Method, P extends PathOf<M>> = paths[P][M];
type ResponseBody<O> = O extends { responses: { 200: { content: { "application/json": infer T } } } }
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
  /** A raw body, such as YAML, with its content type. */
  raw?: { text: string; contentType: string };
  headers?: Record<string, string>;
  /** The idempotency key: the same for every retry of one request. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

/** An error response of the server, with its message; `status` 0 means that the server was not reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Record<string, unknown> = {},
  ) {
    super(message);
    this.name = messages.refused;
  }

  /** Problems by field, for a form. */
  get problems(): { pointer: string; message: string }[] {
    const found = this.details.problems;
    return Array.isArray(found) ? (found as { pointer: string; message: string }[]) : [];
  }
}

/** The server's message for one field, or for a part of it: "/tools/2" is of "/tools". */
export function fieldProblem(error: Error | null, pointer: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  return error.problems.find((problem) => `${problem.pointer}/`.startsWith(`${pointer}/`))?.message;
}

export async function callApi<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  options: RequestOptions<Operation<M, P>> = {},
): Promise<ResponseBody<Operation<M, P>>> {
  const plainOptions: RequestOptions<unknown> = options as unknown as RequestOptions<unknown>; // the type over all routes is too complex for the compiler
  const response = await sendRequest(
    method,
    buildUrl(path as string, plainOptions.path, plainOptions.query as Values | undefined),
    plainOptions,
  );
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json");
  return (isJson && text ? parseJson(text) : text) as ResponseBody<Operation<M, P>>;
}

/** The raw response, for its headers or as a stream; throws ApiError for an error response. */
export async function sendRequest(
  method: string,
  url: string,
  options: RequestOptions<unknown> = {},
): Promise<Response> {
  try {
    return await sendOnce(method, url, options);
  } catch (error) {
    const needsSignIn = error instanceof ApiError && error.code === "recent_sign_in_required";
    if (!needsSignIn || !(await promptSignIn())) throw error;
    // The server answered, so a retry needs a new idempotency key.
    return await sendOnce(
      method,
      url,
      options.idempotencyKey ? { ...options, idempotencyKey: crypto.randomUUID() } : options,
    );
  }
}

async function sendOnce(method: string, url: string, options: RequestOptions<unknown>): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, {
      method: method.toUpperCase(),
      headers: buildHeaders(options),
      body: options.raw
        ? options.raw.text
        : options.body === undefined
          ? undefined
          : stringifyJson(options.body),
      signal: options.signal,
      credentials: "same-origin",
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", messages.cannotBeReached);
  }
  if (!response.ok) throw await readError(response);
  return response;
}

export function buildUrl(path: string, values: Values = {}, query: Values = {}): string {
  const pathname = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(values[name] ?? "")),
  );
  const parameters = Object.entries(query).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  const search = new URLSearchParams(parameters.map(([name, value]) => [name, String(value)])).toString();
  return search ? `${pathname}?${search}` : pathname;
}

function buildHeaders(options: RequestOptions<unknown>): Record<string, string> {
  const headers: Record<string, string> = { accept: "application/json", ...options.headers };
  if (options.raw) headers["content-type"] = options.raw.contentType;
  else if (options.body !== undefined) headers["content-type"] = "application/json";
  if (options.idempotencyKey) headers["idempotency-key"] = options.idempotencyKey;
  return headers;
}

async function readError(response: Response): Promise<ApiError> {
  try {
    const { error, message, ...details } = parseJson(await response.text()) as Record<string, unknown>;
    return new ApiError(response.status, String(error), String(message), details);
  } catch {
    return new ApiError(response.status, "broken", messages.serverError(response.status));
  }
}

/** Asks the user to sign in again; true once they did. */
type Prompt = () => Promise<boolean>;

let prompt: Prompt | null = null;

/** Registers the sign-in prompt; returns a function that removes it. */
export function setSignInPrompt(newPrompt: Prompt): () => void {
  prompt = newPrompt;
  return () => {
    if (prompt === newPrompt) prompt = null;
  };
}

/** Whether the user signed in again, so that the refused request can be repeated. */
async function promptSignIn(): Promise<boolean> {
  return prompt ? await prompt() : false;
}
