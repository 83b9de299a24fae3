import { beforeEach, expect, it } from "vitest";
import { isNew, remember } from "./askedBefore";

beforeEach(() => localStorage.clear());

it("knows what was brought up", () => {
  expect(isNew("a")).toBe(true);
  remember("a");
  expect(isNew("a")).toBe(false);
});

it("forgets the oldest, and bears what others left there", () => {
  localStorage.setItem("interlock-asked", "{");
  for (let number = 0; number <= 300; number += 1) remember(`id-${number}`);
  expect(isNew("id-0")).toBe(true);
  expect(isNew("id-300")).toBe(false);
});
