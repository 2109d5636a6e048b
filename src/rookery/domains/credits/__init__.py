"""Credits: what agents have to spend, what things cost, and what runs have cost. docs/credits.md explains it."""
