import { act, renderHook } from "@testing-library/react";
import { expect, it } from "vitest";
import { useRecipient } from "./useRecipient";

const MAIL = { approval: "a1", tool: "send_mail" };
const ISSUE = { approval: "a2", tool: "create_issue" };

function recipientOf(...requests: (typeof MAIL)[]) {
  return renderHook((now: (typeof MAIL)[]) => useRecipient(now), { initialProps: requests });
}

it("is the agent while nothing is open", () => {
  expect(recipientOf().result.current).toMatchObject({ kind: "message", approval: "" });
});

it("is a question about the first open request by default", () => {
  expect(recipientOf(MAIL, ISSUE).result.current).toMatchObject({
    kind: "question",
    approval: "a1",
    tool: "send_mail",
  });
});

it("is a question about the request that was chosen, while it is open", () => {
  const { result, rerender } = recipientOf(MAIL, ISSUE);
  act(() => result.current.chooseRequest("a2"));
  expect(result.current).toMatchObject({ kind: "question", approval: "a2" });
  rerender([ISSUE]);
  expect(result.current).toMatchObject({ approval: "a2" });
  rerender([MAIL]);
  expect(result.current).toMatchObject({ approval: "a1" });
});

it("is an instruction only for the requests that were open when that was chosen", () => {
  const { result, rerender } = recipientOf(MAIL);
  act(() => result.current.choose("instruction"));
  expect(result.current).toMatchObject({ kind: "instruction", approval: "" });
  rerender([MAIL, ISSUE]);
  expect(result.current).toMatchObject({ kind: "question", approval: "a1" });
  rerender([]);
  expect(result.current).toMatchObject({ kind: "message", approval: "" });
});
