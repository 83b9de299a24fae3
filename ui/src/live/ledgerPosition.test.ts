import { describe, expect, it } from "vitest";
import { LedgerPosition, RESET_EVENT, type LedgerStep } from "./ledgerPosition";

const step = (after: number, at: number): LedgerStep => ({
  after: String(after),
  at: String(at),
  sent: { id: String(at), event: "proposed", data: "{}" },
});
const numbers = (place: LedgerPosition, steps: LedgerStep[]) =>
  steps.flatMap((each) => place.advance(each)).map((sent) => sent.id || sent.event);

describe("a tab's position in the ledger", () => {
  it("passes every event on once, also when it is repeated", () => {
    const place = new LedgerPosition();
    const told = [step(40, 41), step(41, 42), step(40, 41), step(41, 42), step(42, 43)];
    expect(numbers(place, told)).toEqual(["41", "42", "43"]);
  });

  it("resets when it missed events", () => {
    const place = new LedgerPosition();
    expect(numbers(place, [step(40, 41), step(45, 46), step(46, 47)])).toEqual(["41", "reset", "47"]);
  });

  it("misses nothing when the next leader is behind it", () => {
    const place = new LedgerPosition();
    expect(numbers(place, [step(40, 42), step(40, 44)])).toEqual(["42", "44"]);
  });

  it("advances on keep-alive messages without passing an event on", () => {
    const place = new LedgerPosition();
    expect(place.advance({ after: "40", at: "45" })).toEqual([]);
    expect(numbers(place, [step(45, 46)])).toEqual(["46"]);
  });

  it("goes back when the server resets it, as after a restored backup", () => {
    const place = new LedgerPosition();
    place.advance(step(90, 91));
    expect(place.advance({ after: "91", at: "12", sent: { ...RESET_EVENT, id: "12" } })).toHaveLength(1);
    expect(numbers(place, [step(12, 13)])).toEqual(["13"]);
  });
});
