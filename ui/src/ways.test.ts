import { expect, it } from "vitest";
import type { Myself } from "./api/me";
import { homeOf, wayOf } from "./ways";

const somebody = (role: string): Myself => ({
  name: "ann",
  role,
  teams: [],
  workspace: "default",
  via: "web",
});

it("finds the page of an address, and of what lies below it", () => {
  expect(wayOf("/settings/people")?.name).toBe("Settings");
  expect(wayOf("/chat")?.name).toBe("Chat");
  expect(wayOf("/chatter")).toBeUndefined();
});

it.each([
  ["viewer", "/inbox"],
  ["reviewer", "/chat"],
  ["admin", "/chat"],
])("lets a %s begin at %s", (role, path) => {
  expect(homeOf(somebody(role))).toBe(path);
});
