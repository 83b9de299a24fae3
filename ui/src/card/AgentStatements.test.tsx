// @vitest-environment happy-dom
import { MantineProvider } from "@mantine/core";
import { render } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { ApprovalSnapshot } from "../api/approvals";
import { AgentStatements } from "./AgentStatements";
import { titleFindings } from "./Findings";

const shown = (card: Partial<ApprovalSnapshot["card"]>) =>
  render(
    <MantineProvider>
      <AgentStatements card={card as ApprovalSnapshot["card"]} />
    </MantineProvider>,
  ).container;

describe("the agent's statements", () => {
  it("are folded, name the agent as their source and are marked as not verified", () => {
    const found = shown({ agent_description: "Look at the weather", agent_preview: "Sunny" });
    const statements = [...found.querySelectorAll("details")];
    expect(statements.map((each) => [each.open, each.querySelector("summary")?.textContent])).toEqual([
      [false, "Agent's descriptionnot verified · 19 characters"],
      [false, "Agent's previewnot verified · 5 characters"],
    ]);
    expect(statements.map((each) => each.querySelector("blockquote")?.textContent)).toEqual([
      "Look at the weather",
      "Sunny",
    ]);
  });

  it("render nothing when there are none", () => {
    expect(
      shown({ agent_description: "", agent_preview: "", agent_says: "" }).querySelector("*:not(style)"),
    ).toBeNull();
  });
});

describe("the findings title", () => {
  const finding = (kind: string, pointer: string) => ({ kind, pointer });

  it("distinguishes hidden arguments from misleading text", () => {
    expect(titleFindings([finding("agent_secret", "")])).toBe("The agent hides arguments from you");
    expect(titleFindings([finding("bidi", "/a"), finding("agent_secret", "")])).toBe(
      "1 argument contains text that may mislead you, and the agent hides arguments from you",
    );
    expect(titleFindings([finding("misfit", "/a"), finding("misfit", "/b")])).toBe(
      "2 arguments do not match the tool's schema",
    );
  });
});
