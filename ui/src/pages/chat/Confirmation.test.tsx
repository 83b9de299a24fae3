import { MantineProvider } from "@mantine/core";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { Confirmation } from "./Confirmation";
import type { Line } from "./threadEntries";
import { addEarlierLines, addUserMessage, EMPTY_THREAD } from "./threadState";
import { buildTranscript } from "./transcriptItems";

const QUESTION = { requires_confirmation: true, message: "Delete it?", would: null };

function line(n: number, kind: string, body: Record<string, unknown>): Line {
  return { n, kind, body, at: "", actor: "" };
}

const asked = (end: string, question: object = QUESTION) =>
  addEarlierLines(EMPTY_THREAD, [
    line(1, "said", { text: "delete it" }),
    line(3, "resulted", { call: "c1", tool: "drop", status: "confirming", result: question }),
    line(4, "ended", { status: end }),
  ]);

function show(state: typeof EMPTY_THREAD, person = "You"): string | null {
  const question = buildTranscript(state.entries).find((item) => item.kind === "confirmation");
  render(
    <MantineProvider>
      <Confirmation question={question!} person={person} onSend={() => undefined} />
    </MantineProvider>,
  );
  const group = screen.getByRole("group", { name: "Confirmation" });
  return (group.querySelector("summary b") ?? group.lastElementChild!).textContent;
}

afterEach(cleanup);

describe("a confirmation in the chat", () => {
  it("has buttons while it is open", () => {
    expect(show(asked("done"))).toBe("Yes, do itNo");
  });

  it.each([
    ["a\u202eb\nc", "a\\u{202e}b\nc"],
    [{ to: "a\u202eb" }, '{\n  "to": "a\\u202eb"\n}'],
  ])("shows what nobody would see otherwise: %j", (would, shown) => {
    const question = { ...QUESTION, message: "Send it to ann\u200b?", would };
    show(asked("done", question));
    const group = screen.getByRole("group", { name: "Confirmation" });
    expect(group.querySelector("p + p")?.textContent).toBe("Send it to ann\\u{200b}?");
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
