import { describe, expect, it } from "vitest";
import { checkSchema, toPlainWords } from "./checkSchema";

const issue = {
  type: "object",
  properties: {
    title: { type: "string", minLength: 1, maxLength: 5 },
    count: { type: "integer", minimum: 1, exclusiveMaximum: 9007199254740993n },
    state: { enum: ["open", "done"] },
    owner: { anyOf: [{ $ref: "#/$defs/person" }, { type: "null" }] },
    labels: { type: "array", items: { type: "string" }, maxItems: 2 },
  },
  required: ["title"],
  additionalProperties: false,
  $defs: { person: { type: "object", properties: { name: { type: "string" } }, required: ["name"] } },
};

describe("the schema check in the browser", () => {
  it.each([
    [{ title: "Fix" }, []],
    [{}, ["/title is required"]],
    [{ title: "" }, ["/title must not be empty"]],
    [{ title: "too long" }, ["/title must have at most 5 characters"]],
    [{ title: "😀😀😀😀😀" }, []],
    [{ title: 1 }, ["/title must be a text"]],
    [{ title: "a", count: 1.5 }, ["/count must be a whole number"]],
    [{ title: "a", count: 0 }, ["/count must be at least 1"]],
    [{ title: "a", count: 9007199254740992n }, []],
    [{ title: "a", count: 9007199254740993n }, ["/count must be less than 9007199254740993"]],
    [{ title: "a", state: "shut" }, ['/state must be one of "open", "done"']],
    [{ title: "a", owner: null }, []],
    [{ title: "a", owner: {} }, ["/owner/name is required"]],
    [
      { title: "a", labels: ["x", 2, "z"] },
      ["/labels must have at most 2 items", "/labels/1 must be a text"],
    ],
    [{ title: "a", more: 1 }, ["/more is not known here; remove it"]],
    [{ title: { $secret: "abc" } }, []],
  ])("%o", (value, wanted) => {
    expect(checkSchema(issue, value).map(({ pointer, message }) => `${pointer} ${message}`)).toEqual(wanted);
  });

  it.each([
    ["email", "ann@example.com", "ann"],
    ["email", '"a b"@example', "a b@example.com"],
    ["uri", "mailto:ann@example.com", "example.com/a"],
    ["date", "2026-12-01", "1.12.2026"],
    ["date-time", "2026-12-01T10:00:00+01:00", "2026-12-01"],
    ["time", "10:00:00Z", "10:00"],
  ])("checks the format %s", (format, right, wrong) => {
    const schema = { type: "string", format };
    expect(checkSchema(schema, right)).toEqual([]);
    expect(checkSchema(schema, wrong)).toEqual([{ pointer: "", message: `must be a valid ${format}` }]);
    expect(checkSchema({ ...schema, $schema: "http://json-schema.org/draft-04/schema#" }, wrong)).toEqual([]);
  });

  it("leaves patterns, expensive and unclear schemas to the server", () => {
    const stall = { type: "string", pattern: "^(a+)+$", format: "hostname" };
    expect(checkSchema(stall, `${"a".repeat(40)}!`)).toEqual([]);
    const deep = Array.from({ length: 40 }, (_, n) => [
      `d${n}`,
      { anyOf: [1, 2].map(() => ({ $ref: `#/$defs/d${n + 1}` })) },
    ]);
    expect(
      checkSchema({ $ref: "#/$defs/d0", $defs: Object.fromEntries([...deep, ["d40", false]]) }, 1),
    ).toEqual([]);
    expect(checkSchema({ $ref: "#" }, 1)).toEqual([]);
    expect(checkSchema({ $ref: "#/$defs/x", $defs: { x: { $id: "elsewhere", type: "string" } } }, 1)).toEqual(
      [],
    );
    expect(checkSchema({ patternProperties: { "^x": {} }, additionalProperties: false }, { x: 1 })).toEqual(
      [],
    );
  });

  it("calls formats by what people call them", () => {
    const said = ["email", "date-time", "hostname"].map((name) =>
      toPlainWords({ pointer: "/a", message: `must be a valid ${name}` }),
    );
    expect(said).toEqual([
      { pointer: "/a", message: "must be an e-mail address" },
      { pointer: "/a", message: "must be a date and a time" },
      { pointer: "/a", message: "must be a valid hostname" },
    ]);
  });
});
