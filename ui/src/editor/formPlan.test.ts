import { describe, expect, it } from "vitest";
import { stringifyJson } from "../api/json";
import { blankValue, fromFormData, toFormData } from "./formData";
import { generalizePointer, makeFormPlan, type FormPlan } from "./formPlan";

const kinds = (plan: FormPlan | undefined): unknown => {
  if (plan?.properties)
    return Object.fromEntries(Object.entries(plan.properties).map(([name, inner]) => [name, kinds(inner)]));
  return plan?.items ? [kinds(plan.items)] : plan?.$id;
};
const object = (properties: object, more: object = {}) => ({ type: "object", properties, ...more });

describe("the form", () => {
  it("puts required fields first, but keeps the order of the arguments for a schema declared by the agent", () => {
    const schema = object({ amount: {}, note: {}, to: {} }, { required: ["to"] });
    const names = (plan: FormPlan) => Object.keys(plan.properties ?? {});
    expect(names(makeFormPlan(schema, [{ amount: 1, to: "ann" }]))).toEqual(["to", "amount", "note"]);
    expect(names(makeFormPlan(schema, [{ amount: 1, to: "ann" }], new Set(), true))).toEqual([
      "amount",
      "to",
      "note",
    ]);
  });

  it("shows objects in a line each only if their fields have room", () => {
    const list = (times: number) => {
      const cells = Array.from({ length: times }, (_, n) => [
        `at${n}`,
        { type: "string", format: "date-time" },
      ]);
      const items = object({ name: { type: "string" }, ...Object.fromEntries(cells) });
      return makeFormPlan(object({ rows: { type: "array", items } }), [{ rows: [{ name: "a" }] }]).properties;
    };
    expect(list(1)?.rows?.isTable).toBe(true);
    expect(list(2)?.rows?.isTable).toBe(false);
  });

  it("has a field type for every kind of value", () => {
    const schema = object(
      {
        title: { type: "string" },
        count: { type: "integer" },
        draft: { type: "boolean" },
        state: { enum: ["open", "done"] },
        level: { oneOf: [{ const: 1 }, { const: 2 }] },
        tags: { type: "array", items: { type: "string" } },
        owner: { $ref: "#/$defs/person" },
        fixed: { const: "v1" },
        stamp: { type: "string", readOnly: true },
        shape: { type: "array", prefixItems: [{ type: "number" }] },
      },
      { $defs: { person: object({ name: { type: "string" } }) } },
    );
    expect(kinds(makeFormPlan(schema, [{}]))).toEqual({
      title: "Text",
      count: "Number",
      draft: "Flag",
      state: "Choice",
      level: "Choice",
      tags: ["Text"],
      owner: { name: "Text" },
      fixed: "Locked",
      stamp: "Locked",
      shape: "AsJson",
    });
  });

  it("collapses nullable unions", () => {
    const optional = { anyOf: [{ type: "string" }, { type: "null" }], default: null, description: "Who." };
    const { owner, size } = makeFormPlan(object({ owner: optional, size: { type: ["integer", "null"] } }), [
      { owner: null },
    ]).properties as Record<string, FormPlan>;
    expect(owner).toMatchObject({ $id: "Text", nullable: true, description: "Who." });
    expect(size).toMatchObject({ $id: "Number", nullable: true });
  });

  it("resolves a union by the current values", () => {
    const either = {
      oneOf: [object({ cents: { type: "integer" } }, { required: ["cents"] }), { type: "string" }],
    };
    expect(kinds(makeFormPlan(object({ price: either }), [{ price: { cents: 5 } }]))).toEqual({
      price: { cents: "Number" },
    });
    expect(kinds(makeFormPlan(object({ price: either }), [{ price: "5 €" }]))).toEqual({ price: "Text" });
    expect(kinds(makeFormPlan(object({ price: either }), [{}]))).toEqual({ price: "AsJson" });
  });

  it("is made from the values when there is no schema", () => {
    const value = {
      a: "x",
      n: 12345678901234567890n,
      b: true,
      l: ["x"],
      e: [],
      m: [1, "x"],
      o: { p: [{ q: 1 }, { r: 2 }] },
      z: null,
    };
    expect(kinds(makeFormPlan(null, [value]))).toEqual({
      ...{ a: "Text", n: "Number", b: "Flag", l: ["Text"], e: "AsJson", m: "AsJson", z: "AsJson" },
      o: { p: [{ q: "Number", r: "Number" }] },
    });
  });

  it("leaves values to the JSON view that a form would change", () => {
    const value = { text: "a\r\nb", wrong: 5, map: {}, proto: JSON.parse('{"__proto__": 1}') as unknown };
    const schema = object({ text: { type: "string" }, wrong: { type: "string" }, map: { type: "object" } });
    expect(kinds(makeFormPlan(schema, [value]))).toEqual({
      text: "AsJson",
      wrong: "AsJson",
      map: "AsJson",
      proto: "AsJson",
    });
    const cycle = { $ref: "#/$defs/node", $defs: { node: object({ next: { $ref: "#/$defs/node" } }) } };
    expect(JSON.stringify(kinds(makeFormPlan(cycle, [{}]))).length).toBeLessThan(500);
  });

  it("locks secrets, in lists too", () => {
    const value = { token: { $secret: "1" }, users: [{ key: { $secret: "2" } }, { key: { $secret: "3" } }] };
    const locked = new Set(["/token", "/users/0/key"].map((pointer) => generalizePointer(value, pointer)));
    expect(kinds(makeFormPlan(null, [value], locked))).toEqual({
      token: "Locked",
      users: [{ key: "Locked" }],
    });
  });
});

describe("form data", () => {
  it("converts back to the same value, digit for digit", () => {
    const text =
      '{"a":"x","n":12345678901234567890,"f":0.1,"z":null,"e":"","l":[1,2],"o":{"p":[{"q":9007199254740993},{"r":[]}]},"m":[1,"x"]}';
    const value = {
      a: "x",
      n: 12345678901234567890n,
      f: 0.1,
      z: null,
      e: "",
      l: [1, 2],
      o: { p: [{ q: 9007199254740993n }, { r: [] }] },
      m: [1, "x"],
    };
    const plan = makeFormPlan(null, [value]);
    expect(stringifyJson(fromFormData(plan, toFormData(plan, value)))).toBe(text);
  });

  it("gives a new item an empty value", () => {
    const plan = makeFormPlan(object({ l: { type: "array", items: { type: "string" } } }), [{ l: ["a"] }]);
    expect(fromFormData(plan, { l: ['"a"', undefined] })).toEqual({ l: ["a", ""] });
    expect(blankValue(makeFormPlan({ enum: ["x", "y"] }, []))).toBe("x");
  });
});

it("puts required fields first", () => {
  const properties = { assignee: { type: "string" }, labels: { type: "string" }, title: { type: "string" } };
  const plan = makeFormPlan({ type: "object", properties, required: ["title"] }, [{ title: "a" }]);
  expect(Object.keys(plan.properties ?? {})).toEqual(["title", "assignee", "labels"]);
});
