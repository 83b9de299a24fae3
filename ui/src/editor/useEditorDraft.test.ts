import { act, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { draftText, useEditorDraft } from "./useEditorDraft";

const draftOf = (before: unknown, base = "digest") => renderHook(() => useEditorDraft("id", before, base));

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  sessionStorage.clear();
});

describe("a draft", () => {
  it("is one value in two views", () => {
    const { result } = draftOf({ a: 1 });
    act(() => result.current.setText('{ "a": 9007199254740993 }'));
    expect(result.current.draft).toMatchObject({ value: { a: 9007199254740993n }, flaw: null });
    expect(draftText(result.current.draft)).toBe('{ "a": 9007199254740993 }');
    act(() => result.current.setValue({ a: 2 }));
    expect(draftText(result.current.draft)).toBe('{\n  "a": 2\n}');
  });

  it("keeps invalid text and the previous value", () => {
    const { result } = draftOf({ a: 1 });
    act(() => result.current.setText('{"a": '));
    expect(result.current.draft).toMatchObject({ text: '{"a": ', value: { a: 1 } });
    expect(result.current.draft.flaw?.message).toContain("ends");
  });

  it("is restored after closing, with its base digest", () => {
    const first = draftOf({ a: 1 });
    act(() => first.result.current.setText('{"a": 2, '));
    first.unmount();
    const { result } = draftOf({ a: 1 }, "another");
    expect(result.current.draft).toMatchObject({ text: '{"a": 2, ', base: "digest" });
  });

  it("is discarded once it equals the current arguments", () => {
    const first = draftOf({ a: 1 });
    act(() => first.result.current.setValue({ a: 2 }));
    act(() => vi.advanceTimersByTime(1_000));
    expect(sessionStorage.length).toBe(1);
    const { result } = draftOf({ a: 2 });
    expect(result.current.draft.text).toBeNull();
    expect(sessionStorage.length).toBe(0);
  });

  it("survives in memory when the browser stores nothing", () => {
    const full = vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
      throw new Error("full");
    });
    const { result, unmount } = draftOf({ a: 1 });
    act(() => result.current.setValue({ a: 2 }));
    act(() => vi.advanceTimersByTime(1_000));
    expect(result.current.draft.value).toEqual({ a: 2 });
    unmount();
    full.mockRestore();
  });
});
