import { MantineProvider } from "@mantine/core";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { Origin } from "./AgentDetails";
import type { AgentInfo } from "./queries";

afterEach(cleanup);

it("leads to the changes and to the deletions of agents in the ledger", () => {
  const agent = { name: "clerk", source: "stored", version: 0, stored: [] } as unknown as AgentInfo;
  render(
    <MantineProvider env="test">
      <Origin agent={agent} />
    </MantineProvider>,
  );
  const links = screen.getAllByRole("link").map((link) => [link.textContent, link.getAttribute("href")]);
  expect(links).toEqual([
    ["change", "/history?tab=ledger&kind=agent_changed"],
    ["deletion", "/history?tab=ledger&kind=agent_deleted"],
  ]);
});
