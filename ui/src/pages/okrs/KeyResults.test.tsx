import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { KeyResults } from "./KeyResults";
import { useObjective, type KeyResultInfo } from "./queries";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const first: KeyResultInfo = {
  id: "KR-1",
  title: "Answered within a day",
  current: 10,
  target: 90,
  unit: "%",
  percent: 11,
  updated_at: "2027-01-01T00:00:00Z",
  etag: "1",
};

const stale = () => Response.json({ error: "stale", message: "It was changed." }, { status: 409 });

/** A server with one key result, which refuses a change of an older version, and the page in front of it. */
async function open() {
  const server = { stored: first, puts: [] as { etag: string | undefined; current: number }[] };
  const change = (etag: string | undefined, fields: Partial<KeyResultInfo>) => {
    if (etag !== server.stored.etag) return stale();
    server.stored = { ...server.stored, ...fields, etag: String(Number(etag) + 1) };
    return Response.json(server.stored);
  };
  vi.stubGlobal("fetch", (_: string, sent?: RequestInit) => {
    if (sent?.method !== "PUT")
      return Promise.resolve(Response.json({ id: "O-1", key_results: [server.stored] }));
    const etag = (sent.headers as Record<string, string>)["if-match"];
    const fields = JSON.parse(String(sent.body)) as KeyResultInfo;
    server.puts.push({ etag, current: fields.current });
    return Promise.resolve(change(etag, fields));
  });
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <Objective />
      </QueryClientProvider>
    </MantineProvider>,
  );
  fireEvent.click(await screen.findByRole("button", { name: "Edit KR-1" }));
  const reload = () => act(() => client.invalidateQueries());
  return { server, change, reload };
}

function Objective() {
  const { data } = useObjective("O-1");
  return data ? <KeyResults objective={data} mayEdit /> : null;
}

const field = (label: RegExp) => screen.getByLabelText<HTMLInputElement>(label);
const type = (label: RegExp, value: string) => fireEvent.change(field(label), { target: { value } });
const submit = () => fireEvent.submit(screen.getByRole("form", { name: "Edit KR-1" }));

it("a form that was opened before somebody else's change does not overwrite it", async () => {
  const { server, change, reload } = await open();
  type(/^Title/, "Answered in a day");
  change("1", { current: 60 });
  await reload();
  await screen.findByText(/60 of 90/);
  submit();
  await waitFor(() => expect(server.puts).toHaveLength(1));
  expect(server.puts).toEqual([{ etag: "1", current: 10 }]);
  expect(server.stored.current).toBe(60);
  expect(field(/^Title/).value).toBe("Answered in a day");
  fireEvent.click(await screen.findByRole("button", { name: "Load the current version" }));
  expect(field(/^Current/).value).toBe("60");
});

it("a form without changes shows somebody else's change", async () => {
  const { change, reload } = await open();
  change("1", { current: 60 });
  await reload();
  await waitFor(() => expect(field(/^Current/).value).toBe("60"));
});

it("closes once the change is saved, and shows it", async () => {
  const { server } = await open();
  type(/^Current/, "45,5");
  submit();
  await screen.findByRole("button", { name: "Edit KR-1" });
  expect(screen.getByText(/45.5 of 90/)).toBeTruthy();
  expect(server.puts).toEqual([{ etag: "1", current: 45.5 }]);
});

it("what is no number is not sent", async () => {
  const { server } = await open();
  type(/^Current/, "many");
  expect(field(/^Current/).checkValidity()).toBe(false);
  submit();
  await screen.findByText("Enter numbers for the current value and the target.");
  expect(server.puts).toEqual([]);
});
