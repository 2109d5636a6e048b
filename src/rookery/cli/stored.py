"""The database of a home by itself, for commands that look after it without a platform on top."""

import contextlib
import os
from collections.abc import Generator

from rookery.core.errors import NotFound
from rookery.db.database import Database, open_database
from rookery.db.restore import sqlite_file
from rookery.settings import Settings


@contextlib.contextmanager
def open_stored(settings: Settings) -> Generator[Database]:
    """The database, closed afterwards. An SQLite file that is not there is NotFound, never created."""
    file = sqlite_file(settings.database_url)
    if file is not None and not os.path.exists(file):
        raise NotFound(f"there is no database at {file} yet", hint="rookery up or rookery migrate creates it")
    database = open_database(settings.database_url)
    try:
        yield database
    finally:
        database.close()
