"""A fleet at work on a small project, played by scripts: the same server, orchestrator and tools as everywhere."""
