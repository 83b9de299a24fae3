import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError, buildUrl, fieldProblem, sendRequest, setSignInPrompt } from "./client";
import { parseJson, stringifyJson } from "./json";

describe("a recent sign-in", () => {
  const refusal = () =>
    new Response(JSON.stringify({ error: "recent_sign_in_required", message: "Sign in again." }), {
      status: 403,
    });

  /** The idempotency keys that the server received; the first request requires a recent sign-in. */
  function server(): (string | undefined)[] {
    const keys: (string | undefined)[] = [];
    vi.stubGlobal("fetch", (_: string, given: { headers: Record<string, string> }) => {
      keys.push(given.headers["idempotency-key"]);
      return Promise.resolve(keys.length === 1 ? refusal() : new Response("{}"));
    });
    return keys;
  }

  afterEach(() => vi.unstubAllGlobals());

  it("is requested when required, and the refused request is repeated", async () => {
    const keys = server();
    const done = setSignInPrompt(() => Promise.resolve(true));
    expect((await sendRequest("post", "/api/keys", { idempotencyKey: "first" })).status).toBe(200);
    expect(keys).toHaveLength(2);
    expect(keys[1]).not.toBe("first");
    done();
  });

  it("is requested once, and a cancelled prompt leaves the refusal", async () => {
    const keys = server();
    const done = setSignInPrompt(() => Promise.resolve(false));
    await expect(sendRequest("post", "/api/keys")).rejects.toBeInstanceOf(ApiError);
    done();
    await sendRequest("post", "/api/keys");
    expect(keys).toHaveLength(2);
  });
});

describe("URLs", () => {
  it("fill in path values and omit empty query parameters", () => {
    expect(buildUrl("/api/users/{name}", { name: "a/b" }, { q: "x y", cursor: "", limit: 5 })).toBe(
      "/api/users/a%2Fb?q=x+y&limit=5",
    );
  });
});

describe("JSON", () => {
  it("keeps every digit of an integer", () => {
    const text =
      '{"id":9007199254740993,"small":3,"part":0.1,"big":1234567890123456789012345678901234567890}';
    expect(stringifyJson(parseJson(text))).toBe(text);
  });

  it("finds long numbers anywhere, and ignores strings that look like them", () => {
    for (const text of ["[-9007199254740993]", '{"a": 9007199254740993}', "[1,\n12345678901234567890]"])
      expect(stringifyJson(parseJson(text))).toBe(text.replace(/[\s]/g, ""));
    expect(parseJson('{"a":"1:12345678901234567890"}')).toEqual({ a: "1:12345678901234567890" });
  });

  it("keeps the digits of a top-level number", () => {
    for (const text of ["9007199254740993", "-12345678901234567890"])
      expect(stringifyJson(parseJson(text))).toBe(text);
  });
});

it("finds the server's message for a field", () => {
  const refused = new ApiError(400, "invalid_request", "No.", {
    problems: [{ pointer: "/when", message: "This is no condition." }],
  });
  expect(fieldProblem(refused, "/when")).toBe("This is no condition.");
  expect(fieldProblem(refused, "/tool")).toBeUndefined();
  expect(fieldProblem(null, "/when")).toBeUndefined();
});

it("finds the server's message for a part of a field, not for a field whose name begins alike", () => {
  const refused = new ApiError(400, "invalid_request", "No.", {
    problems: [{ pointer: "/tools/2", message: "There is no such tool." }],
  });
  expect(fieldProblem(refused, "/tools")).toBe("There is no such tool.");
  expect(fieldProblem(refused, "/tool")).toBeUndefined();
});
