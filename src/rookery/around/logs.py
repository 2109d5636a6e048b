"""Logs: one JSON object a line on stderr, with the ids that tie it to a call. Never arguments, results or tokens."""

import json
import logging
import os
import sys
import threading
import time
import traceback
from contextvars import ContextVar
from logging.handlers import RotatingFileHandler
from types import TracebackType
from typing import TextIO

from rookery.core.actor import Actor

current: ContextVar[dict[str, str | None] | None] = ContextVar("rookery_log_ids", default=None)
KEPT_BYTES, KEPT_FILES = 10_000_000, 5
IDS = ("request", "session", "tenant", "agent", "trace", "operation")


def bind_ids(actor: Actor, request: str | None, trace: str | None, operation: str | None = None) -> None:
    """Put the ids of a call on every line that its task logs from now on, and what it is, such as `tools/call ping`."""
    current.set(
        {
            "request": request,
            "session": actor.session,
            "tenant": actor.tenant,
            "agent": actor.agent,
            "trace": trace,
            "operation": operation,
        }
    )


class JsonFormatter(logging.Formatter):
    """Formats a record as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for key, value in (current.get() or {}).items():
            if value is not None:
                line[key] = value
        for key in (*IDS, "timeout_s", "port"):
            if (value := record.__dict__.get(key)) is not None:
                line[key] = value
        if record.exc_info and record.exc_info[1] is not None:
            line["traceback"] = _outline(record.exc_info[1])
        return json.dumps(line)


def _outline(error: BaseException | None) -> str:
    """Where it went wrong, and with what kind of error. Not its message, which may repeat what was said in the call."""
    parts: list[str] = []
    while error is not None:
        kind = type(error)
        parts.append("".join(traceback.format_tb(error.__traceback__)) + f"{kind.__module__}.{kind.__qualname__}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\nwhile handling\n".join(parts)


def configure_logs(
    level: str = "info", stream: TextIO | None = None, folder: str | None = None, file: str = "rookery.log"
) -> None:
    """Send everything that is logged to stderr, which stdio clients keep apart from the protocol.

    With a `folder` it is kept there as well, in a `file` of limited size and a few older ones. Without a `stream` of
    their own also what Python itself would print there is logged: errors that end a thread or the process, and
    warnings.
    """
    handlers: list[logging.Handler] = [logging.StreamHandler(stream or sys.stderr)]
    if folder is not None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, file)
        handlers.append(RotatingFileHandler(path, maxBytes=KEPT_BYTES, backupCount=KEPT_FILES, encoding="utf-8"))
    for handler in handlers:
        handler.setFormatter(JsonFormatter())
    if stream is None:
        _take_over_from_python()
    root = logging.getLogger()
    root.handlers[:] = handlers
    root.setLevel(level.upper())
    # The libraries' own chatter would bury ours.
    for name in ("mcp", "uvicorn", "sqlalchemy", "httpx2", "httpcore2", "asyncio"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def _take_over_from_python() -> None:
    log = logging.getLogger("rookery.python")

    def in_thread(found: threading.ExceptHookArgs) -> None:
        log.error("a thread ended with an error", exc_info=found.exc_value)

    def in_finalizer(found: "sys.UnraisableHookArgs") -> None:
        log.error("an error was ignored in a finalizer", exc_info=found.exc_value)

    def at_the_end(_kind: type[BaseException], error: BaseException, _where: TracebackType | None) -> None:
        if not isinstance(error, KeyboardInterrupt):
            log.critical("the process ends with an error", exc_info=error)

    threading.excepthook, sys.unraisablehook, sys.excepthook = in_thread, in_finalizer, at_the_end
    logging.captureWarnings(True)
