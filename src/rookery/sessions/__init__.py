"""Sessions of agents: what is kept of them, what happens in them, and whom their agents ask."""
