import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { draftOf } from "./agentDraft";
import AgentEditor from "./AgentEditor";
import type { AgentInfo } from "./queries";

afterEach(() => {
  cleanup();
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
