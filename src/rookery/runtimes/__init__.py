"""How an agent is run."""
