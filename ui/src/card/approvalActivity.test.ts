import { expect, it } from "vitest";
import type { ApprovalSnapshot } from "../api/approvals";
import { listActivity } from "./approvalActivity";

type Entry = ApprovalSnapshot["timeline"][number];

const AT = "2027-01-15T08:00:00Z";

function approval(...entries: Partial<Entry>[]): ApprovalSnapshot {
  const timeline = entries.map((entry, seq) => ({
    ...{ seq, at: AT, kind: "", actor: "", approval_id: "a", data: {}, content: null, digest: null },
    ...entry,
  }));
  const questions = [
    { number: 1, by: "ann", at: AT, text: "Why?", reply: { by: "agent:bot", at: AT, text: "Because." } },
    { number: 2, by: "ann", at: AT, text: null, reply: null },
  ];
  return { timeline, questions, decisions: ["approve"] } as unknown as ApprovalSnapshot;
}

const lines = (...entries: Partial<Entry>[]) =>
  listActivity(approval(...entries), "ann").map(({ actor, text }) => `${actor} ${text}`);

it("names people, agents and oneself, the newest first", () => {
  expect(
    lines(
      { kind: "proposed", actor: "agent:bot" },
      { kind: "claimed", actor: "ann" },
      { kind: "delegated", actor: "bob", content: { to: { users: ["dana"], teams: ["finance"] } } },
      { kind: "expired", actor: "interlock" },
      { kind: "brand_new", actor: "agent" },
    ),
  ).toEqual([
    "The agent brand new",
    "Interlock let it expire",
    "bob delegated it to dana, team finance",
    "You claimed it",
    "bot asked to run it",
  ]);
});

it("says once that people were notified", () => {
  const told = { kind: "delivered", actor: "interlock" };
  expect(lines(told, told, { kind: "reminded", actor: "interlock" }, told)).toEqual([
    "Interlock notified people",
    "Interlock reminded the approvers",
    "Interlock notified people",
  ]);
});

it("has the words of questions and notes, as far as they are not erased", () => {
  const found = listActivity(
    approval(
      { kind: "asked", actor: "ann", data: { number: 1 } },
      { kind: "replied", actor: "agent:bot", data: { number: 1 } },
      { kind: "asked", actor: "ann", data: { number: 2 } },
      { kind: "commented", actor: "bob", content: { text: "Fine." } },
      { kind: "commented", actor: "bob" },
    ),
    "ann",
  );
  expect(found.map(({ kind, quote, reply }) => [kind, quote, reply])).toEqual([
    ["remark", "erased", undefined],
    ["remark", "Fine.", undefined],
    ["question", "erased", undefined],
    ["question", "Why?", "Because."],
  ]);
});
