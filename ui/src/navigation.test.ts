import { expect, it } from "vitest";
import type { CurrentUser } from "./api/currentUser";
import { findNavPage, homePath } from "./navigation";

const somebody = (role: string): CurrentUser => ({
  name: "ann",
  role,
  teams: [],
  workspace: "default",
  via: "web",
});

it("finds the page of an address, and of what lies below it", () => {
  expect(findNavPage("/settings/people")?.name).toBe("Settings");
  expect(findNavPage("/chat")?.name).toBe("Chat");
  expect(findNavPage("/chatter")).toBeUndefined();
});

it.each([
  ["viewer", "/inbox"],
  ["reviewer", "/chat"],
  ["admin", "/chat"],
])("lets a %s begin at %s", (role, path) => {
  expect(homePath(somebody(role))).toBe(path);
});
