import { describe, expect, it } from "vitest";
import type { ToolInfo } from "./queries";
import {
  coversTool,
  deselectGroup,
  deselectTool,
  groupTools,
  isSelected,
  otherEntries,
  searchTools,
  selectableTools,
  selectGroup,
  selectTool,
} from "./toolSelection";

const tool = (name: string, pack: string | null, source = "pack") =>
  ({ name, pack, source, description: `Does ${name}` }) as ToolInfo;
const known = selectableTools([
  tool("cms_list_pages", "cms"),
  tool("cms_list_posts", "cms"),
  tool("cms_delete_page", "cms"),
  tool("files_read", null, "mcp:files"),
  tool("fund_transfer", null, "configuration"),
  tool("agent_writer", null, "agent"),
]);
const find = (name: string) => known.find((each) => each.name === name)!;
const [cms] = groupTools(known);

it("offers the tools of packs and MCP servers only", () => {
  expect(known.map((each) => each.name)).toEqual([
    "cms_list_pages",
    "cms_list_posts",
    "cms_delete_page",
    "files_read",
  ]);
  expect(groupTools(known).map((group) => group.label)).toEqual(["cms", "MCP server files"]);
});

describe("an entry covers a tool", () => {
  it.each([
    ["cms_list_pages", true],
    ["cms", true],
    ["cms_list", true],
    ["cms_list_*", true],
    ["cms_????_pages", true],
    ["*", true],
    ["cm", false],
    ["cms_list_page", false],
    ["cms.list.pages", false],
    ["mcp:files", false],
  ])("%s: %s", (entry, covers) => {
    expect(coversTool(entry, find("cms_list_pages"))).toBe(covers);
  });

  it("of an MCP server by its source", () => {
    expect(coversTool("mcp:files", find("files_read"))).toBe(true);
  });
});

describe("choosing", () => {
  it("adds a tool once", () => {
    expect(selectTool([], find("files_read"))).toEqual(["files_read"]);
    expect(selectTool(["mcp:files"], find("files_read"))).toEqual(["mcp:files"]);
  });

  it("takes one tool out of a pack and keeps the others", () => {
    const left = deselectTool(["cms", "files_read"], find("cms_delete_page"), known);
    expect(left).toEqual(["cms_list_pages", "cms_list_posts", "files_read"]);
    expect(isSelected(left, find("cms_delete_page"))).toBe(false);
  });

  it("takes all of a pack, with what it gets later, or none of it", () => {
    expect(selectGroup(["cms_list_pages", "files_read"], cms!)).toEqual(["files_read", "cms"]);
    expect(deselectGroup(["*"], cms!, known)).toEqual(["files_read"]);
  });
});

it("names the entries that are no tool's name", () => {
  expect(otherEntries(["cms", "files_read", "linaer_issue"], known)).toEqual([
    { entry: "cms", count: 3 },
    { entry: "linaer_issue", count: 0 },
  ]);
});

it("finds tools by all the words, in name, pack or description", () => {
  expect(searchTools(known, "LIST cms").map((each) => each.name)).toEqual([
    "cms_list_pages",
    "cms_list_posts",
  ]);
  expect(searchTools(known, "")).toHaveLength(4);
});
