"""Tools of MCP servers: configured servers are connected in the background, and each tool goes through the gate."""
