"""What happened in a history, in order, for whoever replays it."""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rookery.core.errors import RookeryError
from tests.engine.simulation.clock import HOST


class Log:
    """Lines with their time. They are kept only if somebody wants to read them."""

    def __init__(self, now: Callable[[], float], *, keep: bool) -> None:
        self.lines: list[str] = []
        self.unexpected: list[str] = []
        """Errors that the product logged with where they came from: nobody has foreseen them."""
        self._now = now
        self._keep = keep

    def __call__(self, who: str, what: str) -> None:
        if self._keep:
            self.lines.append(f"{self._now():10.3f}  {who:<12}  {what}")

    @contextmanager
    def instead_of_logging(self) -> Generator[None]:
        """What the product logs is among the lines, or nowhere."""
        root, handler = logging.getLogger(), _Lines(self)
        before, level, disabled = root.handlers[:], root.level, root.manager.disable
        root.handlers[:] = [handler]
        root.setLevel(logging.INFO)
        logging.disable(logging.NOTSET if self._keep else logging.WARNING)
        try:
            yield
        finally:
            root.handlers[:] = before
            root.setLevel(level)
            logging.disable(disabled)


class _Lines(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        where = getattr(HOST.get(), "name", "outside")
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and record.levelno >= logging.ERROR and not isinstance(error, RookeryError):
            self._log.unexpected.append(f"{record.getMessage()}: {type(error).__name__}: {error}")
        self._log(where, f"  [{record.levelname.lower()}] {self.format(record)}")
