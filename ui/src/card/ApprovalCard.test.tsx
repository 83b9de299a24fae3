// @vitest-environment happy-dom
import { MantineProvider } from "@mantine/core";
import { render } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { ApprovalSnapshot } from "../api/approvals";
import { AgentStatements, ToolPreview } from "./ApprovalCard";
import { titleFindings } from "./Findings";

const shown = (card: Partial<ApprovalSnapshot["card"]>) =>
  render(
    <MantineProvider>
      <AgentStatements card={card as ApprovalSnapshot["card"]} />
    </MantineProvider>,
  ).container;

describe("the agent's statements", () => {
  it("have a heading that names the agent as their source and marks them as unverified", () => {
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

  it("render nothing when there are none", () => {
    expect(
      shown({ agent_description: "", agent_preview: "", agent_says: "" }).querySelector("*:not(style)"),
    ).toBeNull();
  });
});

describe("the preview", () => {
  const note = "This preview is of the arguments before your change.";
  const text = (isEditing: boolean) =>
    render(
      <MantineProvider>
        <ToolPreview text="Deletes 3 sections" isEditing={isEditing} />
      </MantineProvider>,
    ).container.querySelector("[role=group]")?.textContent;

  it("is marked as one of the original arguments while they are edited", () => {
    expect([text(false), text(true)]).toEqual([
      "PreviewDeletes 3 sections",
      `Preview${note}Deletes 3 sections`,
    ]);
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
