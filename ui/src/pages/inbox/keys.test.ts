import { afterEach, describe, expect, it } from "vitest";
import { actionForKey } from "./keys";

const usual = {
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  shiftKey: false,
  repeat: false,
  isComposing: false,
};
const press = (key: string, more: object = {}) =>
  actionForKey({ key, ...usual, defaultPrevented: false, target: document.body, ...more });

function within(html: string, selector: string): Element {
  document.body.innerHTML = html;
  const found = document.querySelector(selector);
  if (!found) throw new Error(selector);
  return found;
}

afterEach(() => {
  document.body.innerHTML = "";
});

describe("single keys", () => {
  it("are case-insensitive", () => {
    expect([press("a"), press("A"), press("?"), press("w")]).toEqual(["approve", "approve", "help", null]);
  });

  it("reject at once, or with a reason when Shift is held", () => {
    expect([press("r"), press("R"), press("R", { shiftKey: true })]).toEqual([
      "reject",
      "reject",
      "rejectWithReason",
    ]);
  });

  it("are ignored while typing, composing, or with an open dialog", () => {
    expect(press("a", { target: within("<input>", "input") })).toBeNull();
    expect(press("a", { target: within("<textarea></textarea>", "textarea") })).toBeNull();
    expect(press("r", { target: within("<div contenteditable><b>x</b></div>", "b") })).toBeNull();
    expect(press("a", { target: within("<dialog open><button>x</button></dialog>", "button") })).toBeNull();
    expect(press("a", { isComposing: true })).toBeNull();
    expect(press("x", { target: within("<input type=checkbox>", "input") })).toBe("select");
    expect(press("j", { target: within("<article><input type=radio></article>", "input") })).toBe("next");
    expect(
      press("ArrowDown", { target: within("<article><input type=radio></article>", "input") }),
    ).toBeNull();
  });

  it.each(["menu", "dialog", "listbox"])("are ignored inside of an open %s", (role) => {
    const target = within(`<div role=${role}><button>x</button></div>`, "button");
    expect(["a", "r", "z", "j", "Escape"].map((key) => press(key, { target }))).toEqual(Array(5).fill(null));
  });

  it("are ignored with modifiers, except Ctrl+E and Cmd+E", () => {
    expect([
      press("a", { ctrlKey: true }),
      press("r", { metaKey: true }),
      press("j", { altKey: true }),
    ]).toEqual([null, null, null]);
    expect([press("e", { ctrlKey: true }), press("E", { metaKey: true }), press("e")]).toEqual([
      "edit",
      "edit",
      "edit",
    ]);
  });

  it("do not repeat while held down, except for moving", () => {
    expect([press("a", { repeat: true }), press("z", { repeat: true })]).toEqual([null, null]);
    expect([press("j", { repeat: true }), press("ArrowUp", { repeat: true })]).toEqual(["next", "previous"]);
  });

  it("ignore handled events, and leave the arrow keys to the card", () => {
    expect(press("a", { defaultPrevented: true })).toBeNull();
    const card = within("<article><button>x</button></article>", "button");
    expect([press("ArrowDown", { target: card }), press("j", { target: card })]).toEqual([null, "next"]);
  });
});
