"""The official SDK, which the extra `a2a` brings. It takes half a second to load, so it is loaded when it is needed.

Modules that import it (`card_reading`, `sdk_peer`, and those of the server) are themselves imported inside functions.
"""

import importlib
import importlib.util
import sys

from rookery.core.errors import ConfigurationError
from rookery.outgoing.threads import in_thread

EXTRA = "pip install 'rookery[a2a]'"


def is_installed() -> bool:
    """Whether the extra `a2a` is there."""
    return importlib.util.find_spec("a2a") is not None


async def load(*modules: str) -> None:
    """Import modules that need the SDK, in a thread; ConfigurationError says what to install."""
    if not is_installed():
        raise ConfigurationError("A2A is not installed here", hint=EXTRA)
    missing = [name for name in modules if name not in sys.modules]
    if missing:
        await in_thread(lambda: [importlib.import_module(name) for name in missing])
