"""Workflows: graphs of agent sessions, work tasks, waits and decisions that run to their end whatever crashes."""
