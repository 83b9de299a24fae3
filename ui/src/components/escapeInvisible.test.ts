import { describe, expect, it } from "vitest";
import { needsEscapes, quoteVisible, escapeInvisible, visibleJson } from "./escapeInvisible";
import vectors from "./escapeInvisible.vectors.json";

describe("escapeInvisible", () => {
  it.each(vectors as [string, string][])("shows %j as the server does", (text, shown) => {
    expect(escapeInvisible(text)).toBe(shown);
  });

  it("shows each value differently", () => {
    expect(new Set(vectors.map(([text]) => quoteVisible(text ?? ""))).size).toBe(vectors.length);
  });
});

describe("inputs", () => {
  it("accept typed text, including emoji and line breaks", () => {
    for (const text of ["Fix login", "a\n\tb", "C:\\x", "👩‍💻 ❤️ 1️⃣", "Zoë", "שלום"])
      expect(needsEscapes(text)).toBe(false);
  });

  it("reject text that they would change or hide", () => {
    for (const text of ["a\r\nb", "a\u202eb", "a\u00a0b", "Zoe\u0308", "x\u200by", "\u0007"])
      expect(needsEscapes(text)).toBe(true);
  });
});

describe("visible JSON", () => {
  it("escapes hidden characters and parses to the same value", () => {
    const value = { name: "a\u202eb\u{e0041}c", list: ["\u00a0", "Zoë"] };
    const shown = visibleJson(JSON.stringify(value, null, 2));
    expect(shown).toContain('"a\\u202eb\\udb40\\udc41c"');
    expect(JSON.parse(shown)).toEqual(value);
  });
});
