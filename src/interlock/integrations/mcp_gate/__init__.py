"""The MCP gate: a proxy between any MCP client and any MCP server, which gates tool calls.

    interlock mcp-gate -- COMMAND …

Requests and notifications of the protocol pass in both directions, `tools/call` is checked first, and nothing else
reaches a server. See docs/frameworks/mcp-gate.md.
"""

from interlock.integrations.mcp_gate.gate import PATH, HttpAccess, McpGate, UpstreamOptions, WaitOptions, mcp_gate

__all__ = ["PATH", "HttpAccess", "McpGate", "UpstreamOptions", "WaitOptions", "mcp_gate"]
