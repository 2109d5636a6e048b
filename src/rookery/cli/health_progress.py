"""How far a look at a project's code is: a bar on a terminal, lines elsewhere."""

import contextlib
import sys
from collections.abc import Generator
from typing import Any

import click

from rookery.cli.show import cell
from rookery.core.context import SilentDoor


class Lines(SilentDoor):
    """One line a probe, at once, on stderr: stdout is for what was counted."""

    def tell(self, method: str, params: dict[str, Any]) -> None:
        if method == "progress":
            click.echo(f"{params['progress']}/{params['total']}  {cell(params['message'])}", err=True)


class Bar(SilentDoor):
    """A bar with the time that has passed, and a line for each probe that is done."""

    def __init__(self, progress: Any) -> None:
        self.progress = progress
        self.task = progress.add_task("probing", total=None)

    def tell(self, method: str, params: dict[str, Any]) -> None:
        from rich.text import Text

        if method == "progress":
            if params["progress"]:
                self.progress.console.print(Text(cell(params["message"])))
            self.progress.update(self.task, completed=params["progress"], total=params["total"])


@contextlib.contextmanager
def watching(*, quiet: bool) -> Generator[SilentDoor]:
    """The door of a caller that watches; a silent one if it is to be quiet."""
    if quiet:
        yield SilentDoor()
    elif not sys.stderr.isatty():
        yield Lines()
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as progress:
            yield Bar(progress)
