import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, renderHook } from "@testing-library/react";
import { createElement, type PropsWithChildren } from "react";
import { afterEach, describe, expect, it } from "vitest";
import { useDraft } from "./useDraft";

const client = new QueryClient();
client.setQueryData(["me"], { name: "ann", workspace: "default" });
const wrapper = ({ children }: PropsWithChildren) => createElement(QueryClientProvider, { client }, children);

afterEach(() => {
  cleanup();
  sessionStorage.clear();
});

const start = () =>
  renderHook(({ title, etag }: { title: string; etag: string }) => useDraft("note", { title }, etag), {
    wrapper,
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
    const { result } = renderHook(() => useDraft("note", { title: "One", body: "Text" }, "1"), { wrapper });
    act(() => {
      result.current.set({ title: "Mine" });
      result.current.set({ body: "My text" });
    });
    expect(result.current.values).toEqual({ title: "Mine", body: "My text" });
  });

  it("survives a reload, and knows that there is a newer version by then", () => {
    const first = start();
    act(() => first.result.current.set({ title: "Mine" }));
    first.unmount();
    const { result, rerender } = start();
    expect(result.current).toMatchObject({ values: { title: "Mine" }, isDirty: true, isOutdated: false });
    rerender({ title: "Two", etag: "2" });
    expect(result.current).toMatchObject({ values: { title: "Mine" }, isOutdated: true });
    act(() => result.current.discard());
    expect(sessionStorage.length).toBe(0);
  });

  it("of another person is not shown", () => {
    const first = start();
    act(() => first.result.current.set({ title: "Mine" }));
    client.setQueryData(["me"], { name: "bob", workspace: "default" });
    first.unmount();
    expect(start().result.current).toMatchObject({ values: { title: "One" }, isDirty: false });
    client.setQueryData(["me"], { name: "ann", workspace: "default" });
  });

  it("is forgotten if it was saved when the form was gone, or has other fields than the form", () => {
    const first = start();
    act(() => first.result.current.set({ title: "Mine" }));
    first.unmount();
    first.result.current.markSaved({ title: "Mine" }, { title: "Mine" }, "2");
    expect(sessionStorage.length).toBe(0);
    const place = "draft:default:ann:note";
    for (const stored of ["{", '{"etag": "1"}', '{"etag": "1", "saved": {"a": 1}, "values": {"a": 2}}']) {
      sessionStorage.setItem(place, stored);
      expect(start().result.current).toMatchObject({ values: { title: "One" }, isDirty: false });
      cleanup();
    }
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
