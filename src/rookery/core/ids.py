"""Identifiers that sort by the time they were made."""

import os
import threading
import time

RANDOM_BITS = 80
STEP_BYTES = 6
_lock = threading.Lock()
_last = 0


def new_id(prefix: str) -> str:
    """A fresh id such as `agt-0199…`: 48 bits of milliseconds and 80 random bits, in hexadecimal. Of two that one
    process made the later one sorts behind the earlier, within a millisecond too."""
    global _last
    drawn = time.time_ns() // 1_000_000 << RANDOM_BITS | int.from_bytes(os.urandom(RANDOM_BITS // 8))
    with _lock:
        if drawn <= _last or drawn >> RANDOM_BITS == _last >> RANDOM_BITS:
            # A step of random length, so that nobody guesses the next from one that was seen.
            drawn = _last + 1 + int.from_bytes(os.urandom(STEP_BYTES))
        _last = drawn
    return f"{prefix}-{drawn:032x}"
