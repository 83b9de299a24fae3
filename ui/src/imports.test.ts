import { expect, it } from "vitest";

const SOURCES = import.meta.glob<string>("./**/*.{ts,tsx}", {
  query: "?raw",
  import: "default",
  eager: true,
});

/** "agents/TryAgent.tsx" shows the chat in its page; nothing else needs another page. */
const ALLOWED = new Set(["./pages/agents/TryAgent.tsx"]);

const IMPORT = /(?:from|import\()\s*"(\.[^"]+)"/g;

/** Each file of the app with the modules of the app that it imports. */
const IMPORTS = Object.entries(SOURCES).flatMap(([file, text]) =>
  [...text.matchAll(IMPORT)].map(([, to = ""]) => ({
    file,
    imported: `.${new URL(to, `file:///${file}`).pathname}`,
  })),
);

/** "./pages/okrs/Okrs.tsx" is of "okrs". */
const pageOf = (path: string) => /^\.\/pages\/(\w+)\//.exec(path)?.[1];

it("what pages share imports nothing from a page", () => {
  const shared = /^\.\/(api|card|components|editor|live)\//;
  const wrong = IMPORTS.filter(({ file, imported }) => shared.test(file) && imported.startsWith("./pages/"));
  expect(IMPORTS.length).toBeGreaterThan(100);
  expect(wrong).toEqual([]);
});

it("a page imports nothing from another page", () => {
  const wrong = IMPORTS.filter(({ file, imported }) => {
    const [own, other] = [pageOf(file), pageOf(imported)];
    return own && other && own !== other && !ALLOWED.has(file);
  });
  expect(wrong).toEqual([]);
});

it("the name of a shared hook is used for no other hook", () => {
  const hooks = Object.entries(SOURCES).flatMap(([file, text]) =>
    [...text.matchAll(/^(?:export )?function (use[A-Z]\w*)/gm)].map(([, name = ""]) => ({ file, name })),
  );
  const shared = hooks.filter(({ file }) => !file.startsWith("./pages/"));
  const wrong = shared.filter(({ name }) => hooks.filter((hook) => hook.name === name).length > 1);
  expect(shared.length).toBeGreaterThan(5);
  expect(wrong).toEqual([]);
});
