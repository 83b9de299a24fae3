import { describe, expect, it } from "vitest";
import { daysAgo, freeSectionId, isContentKind, moveEntry, sitePath, suggestSlug } from "./contentKinds";

describe("slugs", () => {
  it("are made of the title", () => {
    expect(suggestSlug("Über uns, kurz")).toBe("uber-uns-kurz");
    expect(suggestSlug("  What's new?  ")).toBe("what-s-new");
    expect(suggestSlug("日本語")).toBe("");
    expect(suggestSlug(`${"x".repeat(79)} y`)).toBe("x".repeat(79));
  });
});

describe("kinds", () => {
  it("are known by name", () => {
    expect(isContentKind("posts")).toBe(true);
    expect(isContentKind("constructor")).toBe(false);
    expect(sitePath("pages", "about")).toBe("/about");
    expect(sitePath("posts", "news")).toBe("/posts/news");
  });
});

describe("sections", () => {
  it("move up and down and stop at the ends", () => {
    expect(moveEntry(["a", "b", "c"], 1, -1)).toEqual(["b", "a", "c"]);
    expect(moveEntry(["a", "b", "c"], 1, 1)).toEqual(["a", "c", "b"]);
    expect(moveEntry(["a", "b"], 0, -1)).toEqual(["a", "b"]);
    expect(moveEntry(["a", "b"], 1, 1)).toEqual(["a", "b"]);
  });

  it("get an id of their own", () => {
    expect(freeSectionId([])).toBe("section-1");
    expect(freeSectionId(["intro", "section-3"])).toBe("section-4");
  });
});

describe("time without views", () => {
  it("is counted in days", () => {
    expect(daysAgo("")).toBeUndefined();
    expect(daysAgo("30", Date.parse("2027-03-31T00:00:00Z"))).toBe("2027-03-01T00:00:00.000Z");
  });
});
