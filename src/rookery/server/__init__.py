"""The protocols: MCP over stdio and its socket, HTTP. Knows tools only through the call path, and no domain."""
