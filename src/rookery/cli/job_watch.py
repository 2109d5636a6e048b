"""`rookery jobs --watch`: a table that is drawn anew, or a line for every change where nobody looks at a terminal."""

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any

import click

from rookery.cli.jobs import SHOWN, brief
from rookery.cli.show import cell

EVERY_S = 1.0
Page = Callable[[], tuple[list[dict[str, Any]], dict[str, int]]]


def follow(page: Page) -> None:
    """Show what `page` answers until Ctrl-C, which is no error."""
    with contextlib.suppress(KeyboardInterrupt):
        if sys.stdout.isatty():
            _draw(page)
        else:
            _tell(page)


def _draw(page: Page) -> None:
    from rich.live import Live

    # Read first, so that a database that cannot be read is one sentence and not a broken table.
    picture = _picture(*page())
    with Live(picture, auto_refresh=False, screen=False) as live:
        while True:
            time.sleep(EVERY_S)
            live.update(_picture(*page()), refresh=True)


def _picture(found: list[dict[str, Any]], counts: dict[str, int]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, caption=told(counts), caption_justify="left")
    for header in SHOWN:
        drawn.add_column(header, no_wrap=header != "error")
    for each in map(brief, found):
        drawn.add_row(*(Text(cell(each[name])) for name in SHOWN))
    return drawn


def told(counts: dict[str, int]) -> str:
    """The counts in one line."""
    return ", ".join(f"{number} {state}" for state, number in counts.items())


def _tell(page: Page) -> None:
    seen: dict[int, dict[str, Any]] = {}
    while True:
        found = {each["id"]: brief(each) for each in reversed(page()[0])}
        for job_id, each in found.items():
            if seen.get(job_id) != each:
                click.echo("  ".join(cell(each[name]) for name in SHOWN))
        sys.stdout.flush()
        seen = found
        time.sleep(EVERY_S)
