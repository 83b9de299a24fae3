import { act, cleanup, renderHook } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { useDraft } from "./useDraft";

afterEach(cleanup);

const start = () =>
  renderHook(({ title, etag }: { title: string; etag: string }) => useDraft({ title }, etag), {
    initialProps: { title: "One", etag: "1" },
  });

describe("a draft", () => {
  it("follows the stored version while nothing is changed", () => {
    const { result, rerender } = start();
    rerender({ title: "Two", etag: "2" });
    expect(result.current.values).toEqual({ title: "Two" });
    expect(result.current.isOutdated).toBe(false);
  });

  it("keeps what a person typed, and says that there is a newer version", () => {
    const { result, rerender } = start();
    act(() => result.current.set({ title: "Mine" }));
    rerender({ title: "Two", etag: "2" });
    expect(result.current).toMatchObject({
      values: { title: "Mine" },
      etag: "1",
      isDirty: true,
      isOutdated: true,
    });
    act(() => result.current.discard());
    expect(result.current).toMatchObject({ values: { title: "Two" }, etag: "2", isDirty: false });
  });

  it("is clean again after it was saved", () => {
    const { result, rerender } = start();
    act(() => result.current.set({ title: "Mine" }));
    act(() => result.current.markSaved({ title: "Mine" }, { title: "Mine" }, "2"));
    rerender({ title: "Mine", etag: "2" });
    expect(result.current).toMatchObject({ isDirty: false, isOutdated: false, etag: "2" });
  });

  it("takes several changes at once", () => {
    const { result } = renderHook(() => useDraft({ title: "One", body: "Text" }, "1"));
    act(() => {
      result.current.set({ title: "Mine" });
      result.current.set({ body: "My text" });
    });
    expect(result.current.values).toEqual({ title: "Mine", body: "My text" });
  });

  it("asks before the page is closed with unsaved changes", () => {
    const { result } = start();
    const close = () => {
      const event = new Event("beforeunload", { cancelable: true });
      dispatchEvent(event);
      return event.defaultPrevented;
    };
    expect(close()).toBe(false);
    act(() => result.current.set({ title: "Mine" }));
    expect(close()).toBe(true);
  });
});
