"""`rookery intake`: raw requests that intake agents turn into issues."""

from typing import Any

import click

from rookery.cli.options import ListByDefault, given, managing
from rookery.cli.session import answer, call_as_owner, opened, owner_flags
from rookery.cli.show import cell, listing, print_json

AT_ONCE = 100
LINE = ["id", "state", "issues", "text", "note"]
STATES = ("new", "taken", "done", "failed")
project_option = click.option("--project", metavar="SLUG", help="The project; the default one if absent.")


@click.group(cls=ListByDefault)
def intake() -> None:
    """Raw requests, and the issues that agents make of them."""


@intake.command()
@click.argument("files", nargs=-1, required=True, type=click.File("rb"), metavar="FILE...|-")
@click.option("--lines", is_flag=True, help="Every line is a request of its own.")
@project_option
@managing
def add(files: tuple[Any, ...], lines: bool, project: str | None, home: str | None, as_json: bool) -> None:
    """Bring requests, one from each file; - is standard input. The same request is kept once."""
    texts = [text for file in files for text in _texts(file, lines)]
    if not texts:
        raise click.UsageError("there is no text to be taken in")
    flags = owner_flags(home, project)
    stored: list[dict[str, Any]] = []
    with opened(flags) as platform:
        for start in range(0, len(texts), AT_ONCE):
            part = {"requests": texts[start : start + AT_ONCE]}
            stored += answer(platform, flags, "submit_requests", part).structured["requests"]
    listing(stored, ["id", "state", "known"], as_json=as_json)


@intake.command("list")
@click.option("--state", type=click.Choice(STATES), help="Only requests in this state.")
@click.option("--limit", type=int, help="At most this many, up to 500; 50 if absent.")
@project_option
@managing
def list_(state: str | None, limit: int | None, project: str | None, home: str | None, as_json: bool) -> None:
    """List requests, newest first: who has them, which issues stand for them, and which files cannot be taken in."""
    found = _list(home, project, given(state=state, limit=limit))
    if as_json:
        print_json(found)
        return
    listing(found["requests"], LINE, as_json=False, empty="no requests; bring one: rookery intake add FILE")
    if found["failed"] is not None:
        click.echo(f"the last intake came to nothing and is tried again: {cell(found['failed'])}", err=True)
    for left in found["left"]:
        click.echo(f"{left['file']} is not taken in: {left['why']}", err=True)


def _texts(file: Any, lines: bool) -> list[str]:
    name = getattr(file, "name", "standard input")
    try:
        text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise click.UsageError(f"{name} is not UTF-8") from None
    found = text.splitlines() if lines else [text]
    return [stripped for each in found if (stripped := each.strip())]


def _list(home: str | None, project: str | None, arguments: dict[str, Any]) -> dict[str, Any]:
    from rookery.engine.intake_list import list_requests

    return call_as_owner(home, list_requests, arguments, project=project)
