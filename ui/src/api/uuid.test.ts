import { expect, it } from "vitest";
import { randomUUID } from "./uuid";

it("makes unique version 4 UUIDs", () => {
  const made = new Set(Array.from({ length: 500 }, randomUUID));
  expect(made.size).toBe(500);
  for (const id of made)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});
