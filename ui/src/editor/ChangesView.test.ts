import { describe, expect, it } from "vitest";
import { diffText, placeOf, shortenText } from "./ChangesView";

describe("the diff of two texts", () => {
  it("shows short texts completely", () => {
    expect(diffText("Fix login", "Fix the login")).toEqual({
      removed: ["Fix login"],
      added: ["Fix the login"],
    });
    expect(diffText("", "x")).toEqual({ removed: [], added: ["x"] });
  });

  it("leaves out most of the unchanged text in long ones", () => {
    const long = "word ".repeat(1000);
    const { removed, added } = diffText(`${long}old${long}`, `${long}new${long}`);
    expect(removed).toEqual([4940, `${"word ".repeat(12)}old${"word ".repeat(12)}`, 4940]);
    expect(added[1]).toContain("new");
  });

  it("shows both ends of the change and splits no character", () => {
    const { added } = diffText("", "😀".repeat(1000));
    expect(added).toEqual(["😀".repeat(200), 600, "😀".repeat(200)]);
    expect(shortenText("short")).toEqual(["short"]);
  });
});

describe("the place of a change", () => {
  it("reads like no other place", () => {
    const places = ["/a/b", "/a › b", "/a/›/b", "/a", '/"a"', "", "/"].map(placeOf);
    expect(places).toEqual(["a › b", '"a › b"', 'a › "›" › b', "a", '"\\"a\\""', "all arguments", '""']);
  });
});
