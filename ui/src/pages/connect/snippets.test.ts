import { expect, it } from "vitest";
import { highlight, isInsecure, renderSnippet, SNIPPETS } from "./snippets";

const HERE = { server: "https://my-agent.example", agent: "clerk", key: "ilk_abc_def" };

it.each(SNIPPETS.map((snippet) => [snippet.name, snippet] as const))(
  "puts server, agent and key into the text for %s",
  (_, snippet) => {
    const text = renderSnippet(snippet, HERE);
    for (const value of Object.values(HERE)) expect(text).toContain(value);
    expect(text).not.toMatch(/localhost|ilk_your_key/);
    expect(renderSnippet(snippet, { ...HERE, key: "" })).toContain("ilk_your_key");
    expect(
      highlight(text, HERE.key)
        .map((part) => part.text)
        .join(""),
    ).toBe(text);
  },
);

it.each(['"; rm -rf ~ #', "it's", "two words", "", "a\n"])(
  "keeps a name that is more than a name out: %j",
  (agent) => {
    for (const snippet of SNIPPETS)
      expect(renderSnippet(snippet, { ...HERE, agent })).toBe(
        renderSnippet(snippet, { ...HERE, agent: "my-agent" }),
      );
  },
);

it("knows which addresses can be overheard, as the Python client does", () => {
  expect(["http://10.0.0.5:8321", "http://interlock.example"].every(isInsecure)).toBe(true);
  expect(
    ["https://10.0.0.5", "http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1"].some(isInsecure),
  ).toBe(false);
});

it("allows an address without TLS where it has to, and only there", () => {
  const lines = SNIPPETS.map((snippet) => [
    snippet.id,
    renderSnippet(snippet, { ...HERE, server: "http://10.0.0.5:8321" }).match(/insecure/g)?.length ?? 0,
  ]);
  expect(lines).toEqual([
    ["python", 1],
    ["langgraph", 1],
    ["openai-agents", 1],
    ["mcp", 0],
    ["claude-code", 3],
    ["curl", 0],
  ]);
});

it("marks the key, texts and words of a program", () => {
  const kinds = highlight('from x import y  # a note\nkey="ilk_abc_def" or "text"', "ilk_abc_def");
  expect(kinds.filter(({ kind }) => kind).map(({ kind, text }) => [kind, text])).toEqual([
    ["word", "from"],
    ["word", "import"],
    ["note", "# a note"],
    ["key", '"ilk_abc_def"'],
    ["word", "or"],
    ["string", '"text"'],
  ]);
});
