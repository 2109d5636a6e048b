"""Identifiers that sort by the time they were made."""

import os
import time


def new_id(prefix: str) -> str:
    """A fresh id such as `agt-0199…`: 48 bits of milliseconds and 80 random bits, in hexadecimal."""
    return f"{prefix}-{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"
