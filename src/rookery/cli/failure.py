"""What a person at the terminal reads when a command fails: one sentence, one hint, no traceback."""

import sys
from typing import IO, Any

import click

from rookery.core.errors import ConfigurationError, DatabaseError, InternalError, RookeryError


class Failure(click.ClickException):
    """A failure that the person can mend. Ends the command with exit code 1."""

    def __init__(self, error: RookeryError) -> None:
        super().__init__(error.message)
        self.error = error

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"rookery: {self.error.message}", err=True, file=file)
        if self.error.hint:
            click.echo(f"  {self.error.hint}", err=True, file=file)


def known_error(error: Exception) -> RookeryError | None:
    """The error as one of ours if a person can do something about it, None for a bug of the program."""
    if isinstance(error, InternalError):
        return InternalError(
            error.message, hint="ROOKERY_LOG_LEVEL=debug shows where; please report it", layer=error.layer
        )
    if isinstance(error, RookeryError):
        return error
    if _of_a_database(error):
        reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        return DatabaseError(f"the database failed: {reason}", hint="rookery doctor looks at it")
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        where = f"{error.filename}: " if error.filename else ""
        reason = error.strerror or str(error)
        return ConfigurationError(f"{where}{reason}", hint="rookery doctor checks folders and permissions")
    return None


def _of_a_database(error: Exception) -> bool:
    # Looked up, not imported: a command that never touched the database has not loaded these.
    names = {"sqlalchemy.exc": "SQLAlchemyError", "sqlite3": "Error", "psycopg": "Error"}
    kinds = tuple(getattr(sys.modules[module], name) for module, name in names.items() if module in sys.modules)
    return isinstance(error, kinds)
