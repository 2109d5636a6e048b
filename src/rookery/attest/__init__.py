"""Attestations: signed statements about agents in logs that can only grow, which anybody can verify offline."""
