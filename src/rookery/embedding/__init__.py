"""Vectors that stand for what a text means, the search among them, and how ranked lists become one."""
