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

it("finds the page of a path and its subpaths", () => {
  expect(findNavPage("/settings/people")?.name).toBe("Settings");
  expect(findNavPage("/chat")?.name).toBe("Chat");
  expect(findNavPage("/connect")?.name).toBe("Agents");
  expect(findNavPage("/chatter")).toBeUndefined();
});

it.each([
  ["viewer", "/inbox"],
  ["reviewer", "/chat"],
  ["admin", "/chat"],
])("gives a %s the home page %s", (role, path) => {
  expect(homePath(somebody(role))).toBe(path);
  expect(homePath(somebody(role), false)).toBe("/inbox");
});
