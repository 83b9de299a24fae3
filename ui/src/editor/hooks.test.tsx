import { render } from "@testing-library/react";
import { useRef } from "react";
import { expect, it, vi } from "vitest";
import { FIRST_INPUT, useFocusFirst } from "./hooks";

function Form() {
  const root = useRef<HTMLDivElement>(null);
  useFocusFirst(root, FIRST_INPUT, null);
  return (
    <div ref={root}>
      <input aria-label="first" />
      <input aria-label="second" />
    </div>
  );
}

it("the focus goes to the first field, and stays in a field that already has it", () => {
  vi.useFakeTimers();
  const one = render(<Form />);
  vi.runAllTimers();
  expect(document.activeElement).toBe(one.getByLabelText("first"));
  one.unmount();
  const other = render(<Form />);
  other.getByLabelText("second").focus();
  vi.runAllTimers();
  expect(document.activeElement).toBe(other.getByLabelText("second"));
  vi.useRealTimers();
});
