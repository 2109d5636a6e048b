"""Logs: one JSON object a line on stderr, with the ids that tie it to a call. Never arguments, results or tokens."""

import json
import logging
import os
import sys
import time
from contextvars import ContextVar
from logging.handlers import RotatingFileHandler
from typing import TextIO

from rookery.core.actor import Actor

current: ContextVar[dict[str, str | None] | None] = ContextVar("rookery_log_ids", default=None)
KEPT_BYTES, KEPT_FILES = 10_000_000, 5
IDS = ("request", "session", "tenant", "agent", "trace")


def bind_ids(actor: Actor, request: str | None, trace: str | None) -> None:
    """Put the ids of a call on every line that its task logs from now on."""
    current.set(
        {
            "request": request,
            "session": actor.session,
            "tenant": actor.tenant,
            "agent": actor.agent,
            "trace": trace,
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
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_logs(level: str = "info", stream: TextIO | None = None, folder: str | None = None) -> None:
    """Send everything that is logged to stderr, which stdio clients keep apart from the protocol.

    With a `folder` it is kept there as well, in a few files of limited size.
    """
    handlers: list[logging.Handler] = [logging.StreamHandler(stream or sys.stderr)]
    if folder is not None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, "rookery.log")
        handlers.append(RotatingFileHandler(path, maxBytes=KEPT_BYTES, backupCount=KEPT_FILES, encoding="utf-8"))
    for handler in handlers:
        handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = handlers
    root.setLevel(level.upper())
    # The libraries' own chatter would bury ours.
    for name in ("mcp", "uvicorn", "sqlalchemy", "httpx2", "asyncio"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
