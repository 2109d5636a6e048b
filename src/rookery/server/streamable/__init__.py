"""MCP over HTTP, every revision: requests in, JSON or event streams out, sessions where the revision has them."""
