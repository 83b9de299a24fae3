import { MantineProvider } from "@mantine/core";
import { cleanup, render, screen } from "@testing-library/react";
import { createElement } from "react";
import { afterEach, expect, it } from "vitest";
import type { FeedRow } from "./feed";
import { endLabel, InboxRow, oneLine, riskMark, type InboxRowProps } from "./InboxRow";
import { spokenSpan } from "./TimeRing";

const AT = "2027-01-15T08:00:00Z";
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" }).format(new Date(AT));

afterEach(cleanup);

it.each([
  ["approved", "approve", "nina", "approved by nina"],
  ["running", "approve", "nina", "approved by nina, running"],
  ["succeeded", "edit", "nina", "approved by nina, succeeded"],
  ["failed", "approve", "nina", "approved by nina, failed"],
  ["failed", "approved", "nina", "approved by nina, failed"], // as told by an event
  ["failed", "approve", "interlock", "approved, failed"],
  ["unknown", "approve", "nina", "approved by nina, outcome unknown"],
  ["expired", "approve", "nina", "approved by nina, not started in time"],
  ["expired", "expire", "interlock", "expired"],
  ["rejected", "reject", "nina", "rejected by nina"],
  ["responded", "respond", "nina", "responded by nina"],
  ["cancelled", "cancel", "nina", "cancelled by nina"],
] as const)("%s after %s by %s", (status, kind, by, label) => {
  const decision = { kind, by, at: AT, via: "", reason: "", comment: "" };
  expect(endLabel({ status, decision })).toBe(`${label}, ${clock}`);
});

it("of one's own decision says so", () => {
  const decision = { kind: "approve", by: "nina", at: AT, via: "", reason: "", comment: "" };
  expect(endLabel({ status: "approved", decision }, "nina")).toBe(`approved by you, ${clock}`);
});

it("has a sentence of one line, in which nothing else is changed", () => {
  expect(oneLine(String.raw`Run post: body = "a\nb\\n\tc"`)).toBe(String.raw`Run post: body = "a b\\n\tc"`);
});

it("without a decision is the status", () => {
  expect(endLabel({ status: "cancelled", decision: null })).toBe("cancelled");
});

it("has a shape for its risk, and one for questions", () => {
  const shape = (risk: string, effect = "write", tool = "pay") => riskMark({ risk, effect, tool });
  expect([shape("high"), shape("high", "destructive"), shape("low"), shape("odd")]).toEqual([
    "high",
    "destructive",
    "low",
    "medium",
  ]);
  expect(shape("low", "read", "request_human_input")).toBe("question");
});

it.each([
  ["request_human_input", "Run request_human_input: all = well", "question"],
  ["request_human_input", "Which account?", "question"],
  ["pay", "Pay Ann", "pay"],
  ["pay", "Run pay: to = ann", null],
])("of %s with the sentence %j has the label %s", (tool, sentence, label) => {
  const decision = { kind: "approve", by: "nina", at: AT, via: "", reason: "", comment: "" };
  const row = { id: "a1", tool, sentence, agent: "clerk", status: "approved", decision, created_at: AT };
  const props = { row: row as unknown as FeedRow, onToggle: null } as unknown as InboxRowProps;
  render(createElement(MantineProvider, { env: "test" }, createElement(InboxRow, props)));
  expect(screen.queryByText(/^(question|pay)$/)?.textContent ?? null).toBe(label);
});

it("says the time left in words", () => {
  expect([spokenSpan(2_300), spokenSpan(3_700), spokenSpan(61), spokenSpan(1)]).toEqual([
    "38 minutes left",
    "1 hour left",
    "1 minute left",
    "1 second left",
  ]);
});
