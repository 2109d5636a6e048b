"""Without the suite these tests fail and say what to do."""

from tests.clients.conftest import installed

__all__ = ["installed"]
