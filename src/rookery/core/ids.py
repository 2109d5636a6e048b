"""Identifiers that sort by the time they were made."""

import os
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id(prefix: str) -> str:
    """A fresh id such as `agt-01k9…`: 48 bits of milliseconds, 80 random bits, in Crockford's alphabet."""
    number = (time.time_ns() // 1_000_000 << 80) | int.from_bytes(os.urandom(10))
    digits = [_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5)]
    return f"{prefix}-{''.join(digits)}"
