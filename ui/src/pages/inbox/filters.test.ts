import { describe, expect, it } from "vitest";
import { activeFilters, readFilters, toQuery, VIEW_FILTERS, viewOf, writeFilters } from "./filters";

describe("filters", () => {
  it("are read from the URL, and unknown values are ignored", () => {
    const filters = readFilters(new URLSearchParams("q=refund&priority=urgent&mine=1&status=odd&tool= pay "));
    expect(filters).toMatchObject({ q: "refund", priority: "", mine: true, status: "pending", tool: "pay" });
  });

  it("keep other URL parameters, and omit default values", () => {
    const search = new URLSearchParams("id=7&tool=pay&status=all");
    expect(writeFilters(search, { tool: "", status: "pending", mine: true }).toString()).toBe("id=7&mine=1");
  });

  it("survive a round trip through the URL", () => {
    const changed = { status: "all", q: "a & b", priority: "high", thread: "t/1", mine: true } as const;
    expect(readFilters(writeFilters(new URLSearchParams(), changed))).toMatchObject(changed);
  });

  it("become query parameters with the API's names; all is no status", () => {
    const filters = readFilters(new URLSearchParams("thread=t1&status=all"));
    expect(toQuery(filters, { limit: 5 })).toMatchObject({ thread_id: "t1", status: "", limit: 5 });
    expect(toQuery(readFilters(new URLSearchParams()), { limit: 5 }).status).toBe("pending");
  });

  it("have labels", () => {
    const names = activeFilters(readFilters(new URLSearchParams("mine=1&tool=pay&q=x"))).map(
      ([, text]) => text,
    );
    expect(names).toEqual(["search: x", "tool: pay"]);
  });

  it("are one of four views, each in the URL", () => {
    for (const [view, filters] of Object.entries(VIEW_FILTERS))
      expect(viewOf(readFilters(writeFilters(new URLSearchParams("mine=1"), filters)))).toBe(view);
  });

  it("ask for what the user decided by all statuses but those of open requests", () => {
    const decided = toQuery(readFilters(new URLSearchParams("status=decided")), { limit: 5, me: "ann" });
    expect([decided.user, decided.status.split(",").includes("pending")]).toEqual(["ann", false]);
    const other = readFilters(new URLSearchParams("status=decided&user=bob"));
    expect(toQuery(other, { limit: 5, me: "ann" }).user).toBe("bob");
  });
});
