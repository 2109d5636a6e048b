"""Watches the event loop: a handler that blocks it would hold up every session for as long as it likes."""

import asyncio
import ctypes
import logging
import sys
import threading
import traceback
from types import FrameType

import rookery.db
from rookery.core import call
from rookery.core.errors import TimedOut

LIMIT_S = 5.0
LOOK_S = 1.0
CALL_PATH = call.__file__
DATABASE = rookery.db.__path__[0]
log = logging.getLogger("rookery.stall")


class Blocking(TimedOut):
    """Raised into a handler that keeps the event loop from running."""

    def __init__(self) -> None:
        super().__init__(
            "the call held up every other one and was stopped",
            hint="its handler must wait with await, or be no external or inline one; tell who wrote it",
        )


class StallWatch:
    """A thread that looks after the loop it was made on, until `stop`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        self._stopped = threading.Event()
        threading.Thread(target=self._watch, name="rookery-stall", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.wait(LOOK_S):
            beat = threading.Event()
            try:
                self._loop.call_soon_threadsafe(beat.set)
            except RuntimeError:
                return
            limit = LIMIT_S
            while not beat.wait(limit) and not self._stopped.is_set():
                self._interrupt()
                limit = LOOK_S

    def _interrupt(self) -> None:
        """End the handler that blocks the loop. Anything else is only reported: no caller would take the error."""
        frame = sys._current_frames().get(self._watched)  # pyright: ignore[reportPrivateUsage]
        in_handler = is_in_handler(frame)
        if in_handler:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._watched), ctypes.py_object(Blocking))
        where = "".join(traceback.format_stack(frame)[-4:]) if frame is not None else "nowhere"
        log.error("the event loop is held up%s, at:\n%s", " and its handler is stopped" if in_handler else "", where)


def is_in_handler(frame: FrameType | None) -> bool:
    """Whether the thread is in a handler, and not in our own code for the database below it."""
    while frame is not None:
        where = frame.f_code.co_filename
        if where == CALL_PATH or where.startswith(DATABASE):
            return where == CALL_PATH
        frame = frame.f_back
    return False
