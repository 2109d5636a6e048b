"""The kinds of jobs of sessions, which live below the domains."""

from rookery.sessions.jobs import bring_answer, take_turn

__all__ = ["bring_answer", "take_turn"]
