import { expect, it } from "vitest";
import { parseBlocks } from "./blocks";

it("reads a table", () => {
  expect(parseBlocks("a | b\n--|:-:\n1 | 2")).toMatchObject([
    { kind: "table", aligns: [undefined, "center"] },
  ]);
});

// With a quadratic expression, minutes
it("reads a very long line below a row in a moment", () => {
  const lines = [`a | b\n${"-".repeat(200_000)}x`, `a | b\n${" |".repeat(100_000)}x`];
  const startedAt = performance.now();
  for (const text of lines) expect(parseBlocks(text).map(({ kind }) => kind)).toEqual(["paragraph"]);
  expect(performance.now() - startedAt).toBeLessThan(2_000);
});
