"""The MCP gate: it stands between any MCP client and any MCP server, and asks people about calls of tools.

    interlock mcp-gate -- COMMAND …

Requests and notifications of the protocol pass in both directions, `tools/call` asks first, and nothing else gets to a
server. See docs/frameworks/mcp-gate.md.
"""

from interlock.integrations.mcp_gate.gate import PATH, HttpAccess, McpGate, UpstreamOptions, WaitOptions, mcp_gate

__all__ = ["PATH", "HttpAccess", "McpGate", "UpstreamOptions", "WaitOptions", "mcp_gate"]
