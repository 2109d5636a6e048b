"""The health of a codebase: what probes count in it, and how the counts move."""
