"""Tools of MCP servers: what the configuration names is connected in the background, and each tool goes by the gate."""
