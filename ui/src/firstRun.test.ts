import { afterEach, expect, it } from "vitest";
import type { Schemas } from "./api/client";
import type { CurrentUser } from "./api/currentUser";
import { isFirstRun, skipFirstRun } from "./firstRun";

const ADMIN = { role: "admin" } as CurrentUser;
const stats = (by_status: Record<string, number>, allowed_reads = 0) =>
  ({ by_status, allowed_reads }) as Schemas["WorkspaceStats"];

afterEach(() => localStorage.clear());

it("is a first run for an admin until the first call, or until it is skipped", () => {
  expect(isFirstRun(ADMIN, stats({}))).toBe(true);
  expect(isFirstRun(ADMIN, stats({ pending: 0 }))).toBe(true);
  expect(isFirstRun(ADMIN, stats({ pending: 0, expired: 1 }))).toBe(false);
  expect(isFirstRun(ADMIN, stats({}, 1))).toBe(false);
  expect(isFirstRun({ role: "reviewer" } as CurrentUser, stats({}))).toBe(false);
  skipFirstRun();
  expect(isFirstRun(ADMIN, stats({}))).toBe(false);
});
