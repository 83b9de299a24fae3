import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, renderHook, waitFor } from "@testing-library/react";
import { createElement, type PropsWithChildren } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { openDrafts, storeDraft } from "../components/draftStorage";
import { useMe } from "./currentUser";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  sessionStorage.clear();
});

const wrapper = ({ children }: PropsWithChildren) =>
  createElement(QueryClientProvider, { client: new QueryClient() }, children);

it("removes the drafts of the person before, by the time that the new one is known", async () => {
  openDrafts("default/zoe");
  storeDraft("draft:a1", "typed");
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json({ name: "ann", workspace: "default" })));
  const { result } = renderHook(useMe, { wrapper });
  expect(sessionStorage.getItem("draft:a1")).not.toBeNull();
  await waitFor(() => expect(result.current.data?.name).toBe("ann"));
  expect(sessionStorage.getItem("draft:a1")).toBeNull();
});
