import { describe, expect, it } from "vitest";
import { escapeInvisible } from "../components/escapeInvisible";
import { shortenMiddle, splitPieces } from "./VisibleText";

const kinds = (text: string, marked = false) =>
  splitPieces(text, marked).map(({ kind, text }) => `${kind} ${text}`);

describe("pieces", () => {
  it("shows escapes as chips with exactly their own text", () => {
    expect(kinds('"42\\u{202e}gpj\\u{202c}"')).toEqual([
      'plain "42',
      "chip \\u{202e}",
      "plain gpj",
      "chip \\u{202c}",
      'plain "',
    ]);
  });

  it("marks the sign of a line break where the text itself has it", () => {
    expect(kinds("a\u21b5\\nb")).toEqual(["plain a", "odd \u21b5", "break \\n", "plain b"]);
  });

  it("treats a doubled backslash as text, not as an escape", () => {
    expect(kinds("\\\\u{202e}")).toEqual(["quiet \\\\", "plain u{202e}"]);
    expect(kinds("\\\\\\u{202e}")).toEqual(["quiet \\\\", "chip \\u{202e}"]);
  });

  it("breaks lines at newline escapes", () => {
    expect(kinds("a\\nb\\tc")).toEqual(["plain a", "break \\n", "plain b", "tab \\t", "plain c"]);
  });

  it.each(["", "\\", "a\\", "\\u{", '"\\"x\\"\\u{200b}"', "p\u0430y \\\\u{202e}", "\ud83d\ude00\\n\ud83d"])(
    "loses nothing: %j",
    (text) => {
      for (const marked of [false, true])
        expect(
          splitPieces(text, marked)
            .map((piece) => piece.text)
            .join(""),
        ).toBe(text);
    },
  );
});

describe("look-alike letters", () => {
  it.each([
    ["https://api.p\u0430rtner.example", ["\u0430"]],
    ["\u043f\u0440\u0438\u0432eт", ["e"]],
    ["\u0440\u0430\u0443.com", ["\u0440", "\u0430", "\u0443"]],
    ["\u043f\u0440\u0438\u0432\u0435\u0442 all", []],
    ["example\uff0ecom", ["\uff0e"]],
    ["\u{1d429}\u{1d41a}y", ["\u{1d429}", "\u{1d41a}"]],
  ])("are marked one by one in %j", (text, odd) => {
    const found = splitPieces(text, true).filter(({ kind }) => kind === "odd");
    expect(found.map((piece) => piece.text)).toEqual(odd);
  });
});

describe("a shortened text", () => {
  it("never splits an escape, and counts the hidden characters", () => {
    const text = `${"\\u{202e}".repeat(50)}end`;
    const { head, tail, hidden } = shortenMiddle(text, 11, 10);
    expect(head).toBe("\\u{202e}");
    expect(tail).toBe("\\u{202e}end");
    expect(hidden).toBe(53 - 1 - 4); // characters, not those of their escapes
  });

  it("keeps surrogate pairs together", () => {
    expect(shortenMiddle("\ud83d\ude00".repeat(10), 3, 3).head).toBe("\ud83d\ude00");
  });

  it("is unchanged when it is short", () => {
    expect(shortenMiddle("short", 10, 10)).toEqual({ head: "short", tail: "", hidden: 0 });
  });
});

it("escapes invisible characters in raw server text", () => {
  expect(escapeInvisible("a\u202eb\\u{202e}\u00a0 \t\u200b\u{e0100}")).toBe(
    "a\\u{202e}b\\\\u{202e}\\u{a0} \\t\\u{200b}\\u{e0100}",
  );
});
