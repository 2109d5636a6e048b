"""What Rookery is measured against. Each file is a program of its own that speaks MCP over stdio, HTTP or both."""
