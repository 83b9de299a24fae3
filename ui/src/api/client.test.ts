import { describe, expect, it } from "vitest";
import { address } from "./client";
import { parse, write } from "./json";

describe("addresses", () => {
  it("fills in values and leaves out what is not asked for", () => {
    expect(address("/api/users/{name}", { name: "a/b" }, { q: "x y", cursor: "", limit: 5 })).toBe(
      "/api/users/a%2Fb?q=x+y&limit=5",
    );
  });
});

describe("JSON", () => {
  it("keeps every digit of a whole number", () => {
    const text =
      '{"id":9007199254740993,"small":3,"part":0.1,"big":1234567890123456789012345678901234567890}';
    expect(write(parse(text))).toBe(text);
  });

  it("finds long numbers wherever they stand, and is not deceived by texts that look like them", () => {
    for (const text of ["[-9007199254740993]", '{"a": 9007199254740993}', "[1,\n12345678901234567890]"])
      expect(write(parse(text))).toBe(text.replace(/[\s]/g, ""));
    expect(parse('{"a":"1:12345678901234567890"}')).toEqual({ a: "1:12345678901234567890" });
  });

  it("keeps the digits of a number that stands alone", () => {
    for (const text of ["9007199254740993", "-12345678901234567890"]) expect(write(parse(text))).toBe(text);
  });
});
