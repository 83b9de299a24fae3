import { expect, it } from "vitest";
import { tabTitle } from "./PageTitle";

it("says how many requests are open, what is open on the page, and its name", () => {
  expect(tabTitle("", "Inbox", 0)).toBe("Inbox · Interlock");
  expect(tabTitle("Refund 42 EUR", "Inbox", 3)).toBe("(3) Refund 42 EUR · Inbox · Interlock");
  expect(tabTitle("Inbox", "Inbox", 1_200)).toBe("(1,200) Inbox · Interlock");
  expect(tabTitle("Page not found", "", 0)).toBe("Page not found · Interlock");
});

it("is shortened", () => {
  expect(tabTitle("€".repeat(200), "Inbox", 0)).toBe(`${"€".repeat(79)}… · Inbox · Interlock`);
});
