import { describe, expect, it } from "vitest";
import { makeFormPlan, TooManyFields } from "./formPlan";
import { pickForm } from "./schemaForms";
import type { JsonObject } from "./values";

const member = (properties: object, required: string[]) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});
const RECORD = {
  title: "Record",
  oneOf: [
    {
      ...member({ type: { const: "A" }, address: { type: "string" } }, ["type", "address"]),
      title: "Address",
    },
    { $ref: "#/$defs/alias" },
    { type: "null" },
  ],
};
const ROOT: JsonObject = {
  $defs: { alias: member({ type: { const: "CNAME" }, target: { type: "string" } }, ["type", "target"]) },
};
const REPEATS = {
  oneOf: [
    member({ every: { type: "string" }, until: { type: "string" } }, ["every"]),
    member({ every: { type: "string" }, times: { type: "integer" } }, ["every", "times"]),
  ],
};
const pick = (schema: unknown, samples: unknown[], isShared = false) =>
  pickForm(schema, ROOT, samples, isShared, { left: 1_000 });

describe("the form of a value", () => {
  it("is the one that it fits best, with the others to switch to", () => {
    const found = pick(RECORD, [
      { type: "A", address: "192.0.2.1" },
      { type: "CNAME", target: "" },
    ]);
    expect(found?.forms).toEqual({
      options: [
        { label: "Address", blank: { type: "A", address: "" } },
        { label: "CNAME", blank: { type: "CNAME", target: "" } },
        { label: "None", blank: null },
      ],
      picked: 1,
      pickedBefore: 0,
    });
    expect(found?.samples).toEqual([{ type: "CNAME", target: "" }]);
    expect(pick(RECORD, [null])?.forms.picked).toBe(2);
  });

  it.each([0, 1])("stays that of its own blank value, %i", (at) => {
    const blank = pick(REPEATS, [{}])?.forms.options[at]?.blank;
    expect(pick(REPEATS, [{}, blank])?.forms.picked).toBe(at);
  });

  it("is not offered where there is only one, and for lists with several", () => {
    expect(pick({ anyOf: [{ type: "string" }, { type: "null" }] }, ["a"])).toBeUndefined();
    expect(pick({ oneOf: [{ const: 1 }, { const: 2 }] }, [1])).toBeUndefined();
    expect(pick(REPEATS, [{}], true)).toBeUndefined();
  });
});

it("a plan has titles, widths, native fields and tables", () => {
  const line = {
    type: "object",
    properties: { item: { type: "string", title: "Item" }, count: { type: "integer" } },
  };
  const schema = {
    type: "object",
    properties: {
      due: { type: "string", format: "date", title: "Due date" },
      at: { type: "string", format: "date-time" },
      lines: { type: "array", items: line, title: "Lines" },
      level: {
        oneOf: [
          { const: 1, title: "Low" },
          { const: 2, title: "High" },
        ],
      },
    },
  };
  const { properties } = makeFormPlan(schema, [{ lines: [{ item: "a", count: 1 }] }]);
  expect(properties).toMatchObject({
    due: { $id: "Time", format: "date", title: "Due date", width: "short" },
    at: { $id: "Time", width: "half" },
    lines: { isTable: true, items: { isCell: true, title: "Lines", properties: { item: { isCell: true } } } },
    level: { $id: "Choice", choiceTitles: ["Low", "High"], width: "short" },
  });
});

describe("a schema that takes long to fit to the values", () => {
  const fields = (make: () => unknown) =>
    Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`f${at}`, make()]));

  it("has no form, since all its fields share their steps", () => {
    const again = Array.from({ length: 3 }, () => ({ $ref: "#/$defs/deep" }));
    const deep = { type: "object", additionalProperties: { $ref: "#/$defs/deep" }, allOf: again };
    const forms = Array.from({ length: 30 }, () => ({ $ref: "#/$defs/deep" }));
    const schema = {
      type: "object",
      $defs: { deep },
      properties: fields(() => ({ oneOf: forms })),
    };
    const value = fields(() => ({ a: { a: { a: { a: { a: "x" } } } } }));
    expect(() => makeFormPlan(schema, [value, value])).toThrow(TooManyFields);
  });

  it("has no form either where the blank values of its forms are large", () => {
    const names = Array.from({ length: 40 }, (_, at) => `m${at}`);
    const wide = {
      type: "object",
      properties: Object.fromEntries(names.map((name) => [name, { $ref: "#/$defs/wide" }])),
      required: names,
    };
    const schema = {
      type: "object",
      $defs: { wide },
      properties: fields(() => ({ oneOf: [{ $ref: "#/$defs/wide" }, { type: "string" }] })),
    };
    expect(() => makeFormPlan(schema, [fields(() => "x")])).toThrow(TooManyFields);
  });
});
