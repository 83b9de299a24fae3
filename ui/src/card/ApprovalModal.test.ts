import { beforeEach, expect, it } from "vitest";
import { isUnseen, markSeen } from "./ApprovalModal";

beforeEach(() => localStorage.clear());

it("remembers which approvals were shown", () => {
  expect(isUnseen("a")).toBe(true);
  markSeen("a");
  expect(isUnseen("a")).toBe(false);
});

it("forgets the oldest and tolerates invalid stored data", () => {
  localStorage.setItem("interlock-asked", "{");
  for (let number = 0; number <= 300; number += 1) markSeen(`id-${number}`);
  expect(isUnseen("id-0")).toBe(true);
  expect(isUnseen("id-300")).toBe(false);
});
