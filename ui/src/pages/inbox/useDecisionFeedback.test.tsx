import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, renderHook } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, expect, it, vi } from "vitest";
import type { FeedStore } from "./feedStore";
import { useUndo } from "./useDecisionFeedback";

const LATER = 60_000;
const queries = new QueryClient();
const wrapper = ({ children }: { children: ReactNode }) => (
  <QueryClientProvider client={queries}>{children}</QueryClientProvider>
);

function makeUndo(...answers: (Response | Error)[]) {
  const sent: string[] = [];
  vi.stubGlobal("fetch", (url: string) => {
    sent.push(url.split("/").at(-2)!);
    const answer = answers.shift();
    return answer instanceof Response ? Promise.resolve(answer) : Promise.reject(answer!);
  });
  const putBack = vi.fn();
  const announce = vi.fn();
  const announcements = { toast: null, hint: "", announce, showToast: vi.fn(), closeToast: vi.fn() };
  const { result } = renderHook(
    () => useUndo(announcements as never, { putBack } as unknown as FeedStore, () => undefined),
    { wrapper },
  );
  const press = () => act(() => result.current.last());
  return { undo: result.current, press, sent, putBack, announce };
}

const done = (id: string) => Response.json({ id, status: "pending" });
const refused = () => Response.json({ error: "too_late", message: "Too late." }, { status: 409 });

afterEach(() => vi.unstubAllGlobals());

it("an undo that was not answered can be tried again", async () => {
  const { undo, press, sent, putBack } = makeUndo(new TypeError("Failed to fetch"), done("b"), done("a"));
  undo.remember(["a"], LATER - 1);
  undo.remember(["b"], LATER);
  await press();
  expect([sent, putBack.mock.calls.length]).toEqual([["b"], 0]);
  await press();
  await press();
  expect([sent, putBack.mock.calls.length]).toEqual([["b", "b", "a"], 2]);
});

it("one that was done or refused is over", async () => {
  const { undo, press, sent, announce } = makeUndo(done("a"), refused());
  undo.remember(["a", "b"], LATER);
  await press();
  await press();
  expect(sent).toEqual(["a", "b"]);
  expect(announce).toHaveBeenCalledWith("Nothing to undo.");
});
