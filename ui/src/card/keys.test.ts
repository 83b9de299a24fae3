import { describe, expect, it } from "vitest";
import { isNearExpiry, secondsLeft, undoSecondsLeft } from "./clock";
import { isApproveKey, isEditKey, type CardKeyState, type KeyStroke } from "./keys";

const ENTER: KeyStroke = {
  key: "Enter",
  repeat: false,
  isComposing: false,
  keyCode: 13,
  altKey: false,
  ctrlKey: false,
  metaKey: false,
  shiftKey: false,
};
const CALM: CardKeyState = { focused: true, ready: true, risk: "medium" };

describe("Enter", () => {
  it("approves a card that has the focus", () => expect(isApproveKey(ENTER, CALM)).toBe(true));

  it.each<[string, Partial<KeyStroke>]>([
    ["another key", { key: " " }],
    ["a repeat", { repeat: true }],
    ["a composition", { isComposing: true }],
    ["the end of a composition", { keyCode: 229 }],
    ["Ctrl", { ctrlKey: true }],
    ["Shift", { shiftKey: true }],
  ])("never counts with %s", (_, change) => expect(isApproveKey({ ...ENTER, ...change }, CALM)).toBe(false));

  it.each<[string, Partial<CardKeyState>]>([
    ["the focus elsewhere", { focused: false }],
    ["unchecked findings", { ready: false }],
    ["high risk", { risk: "high" }],
  ])("never counts with %s", (_, change) => expect(isApproveKey(ENTER, { ...CALM, ...change })).toBe(false));
});

it("Ctrl+E or Cmd+E edits", () => {
  expect(isEditKey({ ...ENTER, key: "e", ctrlKey: true })).toBe(true);
  expect(isEditKey({ ...ENTER, key: "E", metaKey: true })).toBe(true);
  expect(isEditKey({ ...ENTER, key: "e" })).toBe(false);
  expect(isEditKey({ ...ENTER, key: "e", ctrlKey: true, repeat: true })).toBe(false);
});

describe("time", () => {
  it("is counted from the time of the response", () => {
    expect(secondsLeft({ seconds_left: 10, read_at: 1_000 }, 4_000)).toBe(7);
    expect(secondsLeft({ seconds_left: 10, read_at: 1_000 }, 99_000)).toBe(0);
    expect(secondsLeft({ seconds_left: null, read_at: 0 }, 5)).toBeNull();
  });

  it("is near expiry in its last fifth", () => {
    const lived = { created_at: "2026-11-15T10:00:00Z", expires_at: "2026-11-15T10:05:00Z" };
    expect(isNearExpiry(61, lived)).toBe(false);
    expect(isNearExpiry(60, lived)).toBe(true);
  });

  it("left to undo follows the server's clock", () => {
    const rejected = {
      status: "rejected" as const,
      decision: null,
      release_at: "2026-11-15T10:00:08Z",
      server_at: Date.parse("2026-11-15T10:00:02Z"),
      read_at: 50_000,
    };
    expect(undoSecondsLeft(rejected, 50_000)).toBe(6);
    expect(undoSecondsLeft(rejected, 57_000)).toBe(0);
    expect(undoSecondsLeft({ ...rejected, status: "pending" }, 50_000)).toBe(0);
  });
});
