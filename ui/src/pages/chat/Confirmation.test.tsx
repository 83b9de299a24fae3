import { MantineProvider } from "@mantine/core";
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Confirmation } from "./Confirmation";
import type { Line } from "./threadEntries";
import { addEarlierLines, addUserMessage, EMPTY_THREAD } from "./threadState";
import { buildTranscript } from "./transcriptItems";

const QUESTION = {
  requires_confirmation: true,
  message: "Send it?",
  would: null,
  risk: "medium",
  effect: "write",
};

function line(n: number, kind: string, body: Record<string, unknown>): Line {
  return { n, kind, body, at: "", actor: "" };
}

const asked = (end: string, question: object = QUESTION) =>
  addEarlierLines(EMPTY_THREAD, [
    line(1, "said", { text: "delete it" }),
    line(3, "resulted", { call: "c1", tool: "drop", status: "confirming", result: question }),
    line(4, "ended", { status: end }),
  ]);

function show(state: typeof EMPTY_THREAD, person = "You", onSend: (text: string) => void = vi.fn()) {
  const question = buildTranscript(state.entries).find((item) => item.kind === "confirmation");
  render(
    <MantineProvider>
      <Confirmation question={question!} person={person} onSend={onSend} />
    </MantineProvider>,
  );
  const group = screen.getByRole("group", { name: "Confirmation" });
  return (group.querySelector("summary b") ?? group.lastElementChild!).textContent;
}

afterEach(cleanup);

describe("a confirmation in the chat", () => {
  it("has buttons while it is open", () => {
    const onSend = vi.fn();
    expect(show(asked("done"), "You", onSend)).toBe("Yes, do itNo");
    expect(screen.getByText("Medium risk")).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Yes, do it" }));
    expect(onSend).toHaveBeenCalledExactlyOnceWith("yes");
  });

  it.each([
    ["Destructive", { risk: "high", effect: "destructive" }],
    ["High risk", { risk: "high", effect: "write" }],
    ["High risk", { risk: undefined, effect: undefined }], // from before the server said it
  ])("has to be held for a second: %s", (label, level) => {
    vi.useFakeTimers();
    const onSend = vi.fn();
    show(asked("done", { ...QUESTION, ...level }), "You", onSend);
    expect(screen.getByText(label)).toBeTruthy();
    const button = screen.getByRole("button", { name: "Hold to approve" });
    fireEvent.click(button);
    expect(onSend).not.toHaveBeenCalled();
    fireEvent.pointerDown(button, { button: 0 });
    act(() => vi.advanceTimersByTime(1_000));
    expect(onSend).toHaveBeenCalledExactlyOnceWith("yes");
    vi.useRealTimers();
  });

  it.each([
    ["a\u202eb\nc", "a\\u{202e}b\nc"],
    [{ to: "a\u202eb" }, '{\n  "to": "a\\u202eb"\n}'],
  ])("shows what nobody would see otherwise: %j", (would, shown) => {
    const question = { ...QUESTION, message: "Send it to ann\u200b?", would };
    show(asked("done", question));
    const group = screen.getByRole("group", { name: "Confirmation" });
    expect(group.querySelector("div + p")?.textContent).toBe("Send it to ann\\u{200b}?");
    expect(screen.getByLabelText("What would happen").textContent).toBe(shown);
    cleanup();
    show(addUserMessage(asked("done", question), 6, "yes"));
    expect(screen.getByRole("group").querySelector("summary")?.textContent).toContain("ann\\u{200b}?");
  });

  it.each([
    ["yes", "You answered yes."],
    [" Yes! ", "You answered yes."],
    ["no", "You answered no."],
    ["yes, but later", "This question is closed."],
    ["what is on it?", "This question is closed."],
  ])("states the answer that was given: %s", (text, stated) => {
    expect(show(addUserMessage(asked("done"), 6, text))).toBe(stated);
  });

  it("names the person to other readers", () => {
    expect(show(addUserMessage(asked("done"), 6, "yes"), "nina")).toBe("nina answered yes.");
  });

  it("was not answered by a message that could not answer it", () => {
    const closed = "This question is closed.";
    const fromElsewhere = addEarlierLines(asked("done"), [line(6, "said", { text: "yes", via: "ag-ui" })]);
    expect(show(fromElsewhere)).toBe(closed);
    cleanup();
    expect(show(addUserMessage(asked("error"), 6, "yes"))).toBe(closed);
  });
});
