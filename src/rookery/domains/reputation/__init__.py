"""Reputation: what an agent's deeds say of it as a score, attestations of that score, and how those of others are
checked."""
