import { MantineProvider } from "@mantine/core";
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { ApprovalSnapshot } from "../api/approvals";
import { ApproveButton, type ApproveButtonProps } from "./ApproveButton";

const onApprove = vi.fn();

function button(risk: string, more: Partial<ApproveButtonProps> = {}) {
  const approval = { tool: "drop_page", card: { risk, tool: "drop_page" } } as ApprovalSnapshot;
  const props = { approval, ready: true, settled: true, sending: false, onApprove, ...more };
  return (
    <MantineProvider>
      <ApproveButton {...props} />
    </MantineProvider>
  );
}

const find = () => document.querySelector<HTMLElement>("[data-answer=approve]")!;
const wait = (time: number) => act(() => vi.advanceTimersByTime(time));

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  onApprove.mockReset();
});

it("without high risk is a click, once the card has settled", () => {
  const shown = render(button("medium", { settled: false }));
  fireEvent.click(find());
  expect(onApprove).not.toHaveBeenCalled();
  shown.rerender(button("medium", { what: " with 1 change" }));
  expect(find().textContent).toBe("Approve with 1 change");
  fireEvent.click(find());
  expect(onApprove).toHaveBeenCalledOnce();
});

it("of high risk is neither a click nor a key press", () => {
  render(button("high", { what: " with 1 change" }));
  expect(find().textContent).toBe("Hold to approve with 1 change");
  fireEvent.pointerDown(find(), { button: 0 });
  wait(900);
  fireEvent.pointerUp(find());
  fireEvent.click(find());
  for (const key of ["Enter", " "]) {
    fireEvent.keyDown(find(), { key });
    fireEvent.keyUp(find(), { key });
  }
  wait(5_000);
  expect(onApprove).not.toHaveBeenCalled();
});

it.each([
  ["pointer", () => fireEvent.pointerDown(find(), { button: 0 })],
  ["key", () => fireEvent.keyDown(find(), { key: "Enter" })],
])("of high risk is held for a second, by %s", (_, hold) => {
  render(button("high"));
  hold();
  wait(1_000);
  expect(onApprove).toHaveBeenCalledOnce();
});

it("of high risk is the typed name, which does not outlast a change of the call", () => {
  const shown = render(button("high"));
  fireEvent.pointerDown(find(), { button: 0 });
  fireEvent.pointerUp(find());
  const typeName = (value: string) => {
    const field = screen.getByLabelText<HTMLInputElement>("Type drop_page to approve");
    fireEvent.change(field, { target: { value } });
    return field;
  };
  fireEvent.submit(typeName("drop_pag"));
  expect(onApprove).not.toHaveBeenCalled();
  typeName("drop_page");
  shown.rerender(button("high", { ready: false }));
  shown.rerender(button("high"));
  expect(screen.getByLabelText<HTMLInputElement>("Type drop_page to approve").value).toBe("");
  fireEvent.submit(typeName("drop_page"));
  expect(onApprove).toHaveBeenCalledOnce();
});

it("of high risk does nothing at the end of a hold during which the call changed", () => {
  const shown = render(button("high"));
  fireEvent.pointerDown(find(), { button: 0 });
  wait(500);
  shown.rerender(button("high", { ready: false }));
  wait(1_000);
  expect(onApprove).not.toHaveBeenCalled();
});
