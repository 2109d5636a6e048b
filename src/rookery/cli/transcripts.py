"""`rookery transcripts`: sessions of Claude Code on this machine, read from its own files."""

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from rookery.cli.options import ListByDefault, json_option
from rookery.cli.show import cell, fields, listing, print_json

if TYPE_CHECKING:
    from rookery.sessions.transcripts import Transcripts

LINE = ["id", "updated", "model", "cwd", "title"]


@click.group(cls=ListByDefault)
def transcripts() -> None:
    """Transcripts of Claude Code on this machine, to be read."""


@transcripts.command("list")
@click.option("--cwd", metavar="FOLDER", help="Only of sessions that ran in this folder.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most this many.")
@json_option
def list_(cwd: str | None, limit: int, as_json: bool) -> None:
    """List transcripts, those written last first."""
    folder = None if cwd is None else os.path.realpath(os.path.expanduser(cwd))
    found = [asdict(each) for each in _here().page(limit, cwd=folder)]
    shown = found if as_json else [_brief(each) for each in found]
    listing(shown, LINE, as_json=as_json, empty=f"no transcripts in {_here().folder}")


@transcripts.command()
@click.argument("transcript", metavar="ID")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Begin at this byte of the file.")
@json_option
def show(transcript: str, offset: int, as_json: bool) -> None:
    """Show a transcript: what was said, which tools were used, and its tasks. The first 8 characters of ID do."""
    from rookery.cli.spoken import tell_messages

    part = _here().read(transcript, offset)
    if as_json:
        print_json(asdict(part))
        return
    fields(_brief(asdict(part.transcript)), as_json=False)
    while True:
        tell_messages(asdict(message) for message in part.messages)
        for task in part.tasks:
            click.echo(f"\n  [{cell(task['status'])}] {cell(task['text'])}")
        if part.unread:
            click.echo(f"\n({part.unread} lines could not be read)")
        if not part.more:
            return
        part = _here().read(transcript, part.next_offset)


def _here() -> "Transcripts":
    from rookery.sessions.transcripts import Transcripts

    return Transcripts()


def _brief(each: dict[str, Any]) -> dict[str, Any]:
    from rookery.cli.jobs import moment

    times = {name: each[name] for name in ("started_ms", "updated_ms") if each[name] is not None}
    shown = {name: value for name, value in each.items() if not name.endswith("_ms")}
    return {**shown, **{name.removesuffix("_ms"): moment(value) for name, value in times.items()}}
