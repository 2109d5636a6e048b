"""Between agents and their owner: questions that wait for days, and what the owner is told of."""

from rookery.domains.owner.asks_jobs import expire_asks, tell_withdrawn

__all__ = ["expire_asks", "tell_withdrawn"]
