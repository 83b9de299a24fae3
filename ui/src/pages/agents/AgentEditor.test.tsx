import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { draftOf } from "./agentDraft";
import AgentEditor from "./AgentEditor";
import type { AgentInfo } from "./queries";

afterEach(() => {
  cleanup();
  sessionStorage.clear();
  vi.unstubAllGlobals();
});

const before = {
  name: "clerk",
  version: 2,
  model: "",
  instructions: "Use few words.",
  tools: ["cms"],
  tool_approvals: {},
  agents: [],
  limits: {},
  stored: [],
  changed_by: "ann",
} as unknown as AgentInfo;

it("says as every form does that somebody else changed the agent, and by whom", () => {
  vi.stubGlobal("fetch", () => new Promise(() => undefined));
  const now = { ...before, version: 3, changed_by: "bob" };
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <AgentEditor agent={now} initial={draftOf(before)} onSaved={vi.fn()} onClose={vi.fn()} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  expect(screen.getByText("Somebody else changed this")).toBeTruthy();
  expect(screen.getByRole("alert").textContent).toContain("Version 3 is by bob. Your changes are kept.");
  fireEvent.click(screen.getByRole("button", { name: "Apply my changes to the current version" }));
  expect(screen.queryByText("Somebody else changed this")).toBeNull();
});

const PLACE = "draft:::agent:agent clerk"; // nobody is signed in here
const { base: _base, ...settings } = draftOf(before);
const mine = { ...settings, instructions: "Use many words." };

it.each([
  ["is whole", before, "Use many words."],
  ["has an empty base", {}, "Use few words."],
  ["has no base", null, "Use few words."],
  ["has a list as base", [], "Use few words."],
  ["has a base without limits", { ...before, limits: null }, "Use few words."],
  ["has a base without stored fields", { ...before, stored: undefined }, "Use few words."],
  ["has a base with other tools", { ...before, tools: "cms" }, "Use few words."],
])("shows a stored draft only if that can be read: it %s", (_, base, shown) => {
  vi.stubGlobal("fetch", () => new Promise(() => undefined));
  sessionStorage.setItem(PLACE, JSON.stringify({ ...mine, base }));
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <AgentEditor agent={before} initial={draftOf(before)} onSaved={vi.fn()} onClose={vi.fn()} />
      </QueryClientProvider>
    </MantineProvider>,
  );
  expect(screen.getByRole<HTMLTextAreaElement>("textbox", { name: /^Instructions/ }).value).toBe(shown);
});
