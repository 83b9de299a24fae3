import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import AgentList from "./AgentList";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const known = (name: string, source: string) => ({ name, source, base: source, stored: [], warnings: [] });
const counted = {
  name: "seen",
  last_seen_at: "2026-11-01T00:00:00Z",
  calls: 3,
  pending: 0,
  denied: 0,
  complete: true,
};

async function show(left_out: number): Promise<Record<string, string>> {
  const answers: Record<string, unknown> = {
    "/api/agents": { items: [known("seen", "calls"), known("unseen", "calls"), known("own", "stored")] },
    "/api/activity": { items: [counted], left_out, complete: !left_out },
  };
  vi.stubGlobal("fetch", (input: Request | string) => {
    const path = new URL(typeof input === "string" ? input : input.url, location.href).pathname;
    return answers[path]
      ? Promise.resolve(Response.json(answers[path]))
      : new Promise<Response>(() => undefined);
  });
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <AgentList />
      </QueryClientProvider>
    </MantineProvider>,
  );
  await screen.findByText(/3 calls in/);
  const rows = [...document.querySelectorAll<HTMLElement>("[data-agent]")];
  return Object.fromEntries(rows.map((row) => [row.dataset.agent, row.textContent]));
}

it("says of an agent whose activity was left out that it is not counted", async () => {
  const rows = await show(2);
  expect(rows.unseen).toContain("Activity not counted");
  expect(rows.own).toContain("No calls yet");
  expect(rows.seen).not.toContain("not counted");
  screen.getByText("The activity of 2 more agents, known only from their calls, is not counted.");
});

it("says that there were no calls where all activity is counted", async () => {
  expect((await show(0)).unseen).toContain("No calls yet");
  expect(screen.queryByText(/not counted/)).toBeNull();
});
