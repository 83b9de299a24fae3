import { act, cleanup, renderHook } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { useCardDrafts } from "./useCardDrafts";

afterEach(() => {
  cleanup();
  sessionStorage.clear();
});

const open = (id: string) => renderHook(() => useCardDrafts(id));

it("keeps what was typed at a card, and nothing of other cards", () => {
  const first = open("a");
  act(() => first.result.current[1]({ message: "Ask Zoe" }));
  act(() => first.result.current[1]({ note: "I know her" }));
  first.unmount();
  expect(open("b").result.current[0].message).toBe("");
  expect(open("a").result.current[0]).toMatchObject({ message: "Ask Zoe", note: "I know her", reason: "" });
});

it("forgets what was sent, also when the card is gone by then", () => {
  const first = open("a");
  act(() => first.result.current[1]({ reason: "No" }));
  first.unmount();
  first.result.current[1]({ reason: "" });
  expect(sessionStorage.length).toBe(0);
});

it("starts empty where what is stored cannot be read", () => {
  sessionStorage.setItem("draft:a:words", '{"reason": 5, "other": "x"');
  expect(open("a").result.current[0].reason).toBe("");
  sessionStorage.setItem("draft:a:words", '{"reason": 5, "message": "x"}');
  expect(open("a").result.current[0]).toMatchObject({ reason: "", message: "x" });
});
