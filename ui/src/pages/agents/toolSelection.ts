import * as messages from "./messages";
import type { ToolInfo } from "./queries";

/** A tool that agents of the chat can have, with the name by which all tools of its source are chosen. */
export interface SelectableTool extends ToolInfo {
  group: string;
}

export interface ToolGroup {
  name: string;
  label: string;
  tools: SelectableTool[];
}

/** The tools of packs, documents and MCP servers; those known only from calls run elsewhere. */
export function selectableTools(tools: ToolInfo[]): SelectableTool[] {
  return tools.flatMap((tool) => {
    const group = tool.pack ?? (tool.source.startsWith("mcp:") ? tool.source : "");
    return group ? [{ ...tool, group }] : [];
  });
}

export function groupTools(tools: SelectableTool[]): ToolGroup[] {
  const names = [...new Set(tools.map((tool) => tool.group))].sort();
  return names.map((name) => ({
    name,
    label: name.startsWith("mcp:") ? messages.mcpServerNamed(name.slice(4)) : name,
    tools: tools.filter((tool) => tool.group === name),
  }));
}

/** Whether an entry of an agent's tools covers a tool: its name, a pattern, a pack, or an MCP server. */
export function coversTool(entry: string, tool: SelectableTool): boolean {
  return (
    entry === tool.name || entry === tool.group || tool.name.startsWith(`${entry}_`) || glob(entry, tool.name)
  );
}

export function isSelected(entries: string[], tool: SelectableTool): boolean {
  return entries.some((entry) => coversTool(entry, tool));
}

export function selectTool(entries: string[], tool: SelectableTool): string[] {
  return isSelected(entries, tool) ? entries : [...entries, tool.name];
}

/** An entry that covers more than this tool is replaced by the names of the others. */
export function deselectTool(entries: string[], tool: SelectableTool, known: SelectableTool[]): string[] {
  const kept = entries.flatMap((entry) =>
    coversTool(entry, tool)
      ? known
          .filter((other) => other.name !== tool.name && coversTool(entry, other))
          .map((other) => other.name)
      : [entry],
  );
  return [...new Set(kept)];
}

/** All tools of a pack or MCP server, including those that it gets later. */
export function selectGroup(entries: string[], group: ToolGroup): string[] {
  const names = new Set(group.tools.map((tool) => tool.name));
  return [...entries.filter((entry) => !names.has(entry) && entry !== group.name), group.name];
}

export function deselectGroup(entries: string[], group: ToolGroup, known: SelectableTool[]): string[] {
  return group.tools.reduce((left, tool) => deselectTool(left, tool, known), entries);
}

/** The entries that are not the name of a known tool: packs, patterns, and names that no tool has. */
export function otherEntries(entries: string[], known: SelectableTool[]): { entry: string; count: number }[] {
  const names = new Set(known.map((tool) => tool.name));
  return entries
    .filter((entry) => !names.has(entry))
    .map((entry) => ({ entry, count: known.filter((tool) => coversTool(entry, tool)).length }));
}

/** Tools whose name or description has all the words. */
export function searchTools(tools: SelectableTool[], query: string): SelectableTool[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return tools.filter((tool) => {
    const text = `${tool.name} ${tool.group} ${tool.description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** `*` is any characters, `?` is one. */
function glob(pattern: string, name: string): boolean {
  if (!/[*?]/.test(pattern)) return false;
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replace(/\*+/g, ".*")
    .replace(/\?/g, ".");
  return new RegExp(`^${source}$`, "su").test(name);
}
