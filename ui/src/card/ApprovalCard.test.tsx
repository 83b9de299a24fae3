// @vitest-environment happy-dom
import { MantineProvider } from "@mantine/core";
import { render } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { ApprovalSnapshot } from "../api/approvals";
import { AgentStatements } from "./ApprovalCard";
import { titleFindings } from "./Findings";

const shown = (card: Partial<ApprovalSnapshot["card"]>) =>
  render(
    <MantineProvider>
      <AgentStatements card={card as ApprovalSnapshot["card"]} />
    </MantineProvider>,
  ).container;

describe("the agent's words", () => {
  it("stand under a name that says whose they are and that nobody checked them", () => {
    const found = shown({ agent_description: "Look at the weather", agent_preview: "Sunny" });
    const groups = [...found.querySelectorAll("[role=group]")];
    expect(groups.map((group) => group.getAttribute("aria-label"))).toEqual([
      "Agent's description (unverified)",
      "Agent's preview (unverified)",
    ]);
    expect(groups.map((group) => group.querySelector("blockquote")?.textContent)).toEqual([
      "Look at the weather",
      "Sunny",
    ]);
  });

  it("take no room where there are none", () => {
    expect(
      shown({ agent_description: "", agent_preview: "", agent_says: "" }).querySelector("*:not(style)"),
    ).toBeNull();
  });
});

describe("what has to be looked at", () => {
  const finding = (kind: string, pointer: string) => ({ kind, pointer });

  it("tells hidden arguments from text that may deceive", () => {
    expect(titleFindings([finding("agent_secret", "")])).toBe("The agent hides arguments from you");
    expect(titleFindings([finding("bidi", "/a"), finding("agent_secret", "")])).toBe(
      "1 argument contains text that may deceive, and the agent hides arguments from you",
    );
    expect(titleFindings([finding("misfit", "/a"), finding("misfit", "/b")])).toBe(
      "2 arguments do not fit the tool",
    );
  });
});
