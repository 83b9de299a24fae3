import { MantineProvider } from "@mantine/core";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { ApprovalSnapshot } from "../api/approvals";
import Editor from "./Editor";

const onSend = vi.fn();

async function openEditor(risk: string): Promise<HTMLElement> {
  const approval = {
    id: "a1",
    tool: "drop_page",
    args: { page: "home" },
    args_sha256: "d1",
    status: "pending",
    may_decide: ["edit"],
    card: { risk, tool: "drop_page", fields: [] },
    findings: [],
  } as unknown as ApprovalSnapshot;
  render(
    <MantineProvider>
      <Editor
        approval={approval}
        settled
        sending={false}
        refused={null}
        onSend={onSend}
        onClose={() => undefined}
      />
    </MantineProvider>,
  );
  const field = await screen.findByLabelText("page", {}, { timeout: 20_000 });
  fireEvent.change(field, { target: { value: "other" } });
  return field;
}

beforeEach(() => sessionStorage.clear());
afterEach(() => {
  cleanup();
  onSend.mockReset();
});

it("sends an edit by a click", async () => {
  await openEditor("medium");
  fireEvent.click(screen.getByRole("button", { name: "Approve with 1 change" }));
  expect(onSend).toHaveBeenCalledExactlyOnceWith({ page: "other" });
});

it("sends an edit of high risk only if the button is held, not by a click or a key in a field", async () => {
  const field = await openEditor("high");
  const button = screen.getByRole("button", { name: "Hold to approve with 1 change" });
  fireEvent.click(button);
  for (const modifier of [{}, { ctrlKey: true }, { metaKey: true }])
    fireEvent.keyDown(field, { key: "Enter", ...modifier });
  fireEvent.submit(field);
  expect(onSend).not.toHaveBeenCalled();
  fireEvent.pointerDown(button, { button: 0 });
  await vi.waitFor(() => expect(onSend).toHaveBeenCalledExactlyOnceWith({ page: "other" }), 5_000);
});
