"""Rookery: one identity, one scoped set of tools, one record and one person to ask, for every agent of a fleet."""

__version__ = "0.1.0"
