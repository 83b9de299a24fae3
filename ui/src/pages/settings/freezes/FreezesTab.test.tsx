// @vitest-environment happy-dom
import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import Freezes from "./FreezesTab";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const field = (label: RegExp) => screen.getByLabelText<HTMLInputElement>(label);

/** The form, with a server that answers each freeze with `answer`. */
function shown(answer: () => Response, reason = "A runaway agent.") {
  const posts: unknown[] = [];
  vi.stubGlobal("fetch", (_: string, sent?: RequestInit) => {
    if (sent?.method?.toUpperCase() !== "POST")
      return Promise.resolve(Response.json({ items: [], next: null }));
    posts.push(JSON.parse(String(sent.body)));
    return Promise.resolve(answer());
  });
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <Freezes />
      </QueryClientProvider>
    </MantineProvider>,
  );
  fireEvent.change(field(/^Reason/), { target: { value: reason } });
  fireEvent.click(screen.getByRole("button", { name: "Freeze" }));
  fireEvent.click(screen.getByRole("button", { name: "Freeze" }));
  return posts;
}

it("a created freeze leaves an empty form, and the next click only asks for confirmation", async () => {
  const posts = shown(() => Response.json({ id: "f1" }, { status: 201 }));
  await waitFor(() => expect(field(/^Reason/).value).toBe(""));
  expect(screen.queryByRole("button", { name: "Cancel" })).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "Freeze" }));
  expect(screen.getByRole("button", { name: "Cancel" })).toBeTruthy();
  expect(posts).toEqual([{ scope: "workspace", name: "", reason: "A runaway agent." }]);
});

it("a refused freeze can be sent again unchanged", async () => {
  shown(() => Response.json({ error: "forbidden", message: "Ask an admin." }, { status: 403 }));
  await screen.findByText(/Ask an admin/);
  expect(field(/^Reason/).value).toBe("A runaway agent.");
  expect(screen.getByRole("button", { name: "Cancel" })).toBeTruthy();
});

it("a freeze without a reason is not sent, and the form asks for one", async () => {
  const posts = shown(() => Response.json({ id: "f1" }, { status: 201 }), "  ");
  expect(field(/^Reason/).required).toBe(true);
  await screen.findByText("Enter a reason: it is shown to everybody affected.");
  expect(posts).toEqual([]);
  fireEvent.change(field(/^Reason/), { target: { value: "Wrong invoices." } });
  expect(screen.queryByText("Enter a reason: it is shown to everybody affected.")).toBeNull();
});
