"""`rookery asks` and `rookery answer`: what agents ask their owner, and the owner's answers."""

from typing import Any

import click

from rookery.cli.options import given, managing
from rookery.cli.session import call_as_owner
from rookery.cli.show import cell, fields, listing

LINE = ["short", "kind", "agent", "session", "waited", "question", "options", "similar"]
DECIDED = ["short", "status", "kind", "agent", "question", "option", "answer", "answered_by", "via"]
STATUSES = ("open", "answered", "withdrawn", "expired", "all")
SHOWN_LINES = 20
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


@click.command()
@click.argument("ask", required=False)
@click.option("--status", type=click.Choice(STATUSES), help="Which ones; open if absent.")
@click.option("--limit", type=int, help="At most this many, up to 200; 50 if absent.")
@managing
def asks(ask: str | None, status: str | None, limit: int | None, home: str | None, as_json: bool) -> None:
    """What agents ask you, and how to answer.

    With ASK, an id or its first characters, everything about that one.
    """
    if ask is not None:
        _show(_one(home, ask), as_json=as_json)
        return
    found = call_as_owner(home, "list_asks", given(status=status, limit=limit))["asks"]
    for each in found:
        each["waited"] = waited(each["waited_s"])
    is_open = status in (None, "open")
    listing(found, LINE if is_open else DECIDED, as_json=as_json, empty="no agent asks anything" if is_open else "none")
    if found and not as_json and is_open:
        for each in found:
            _what_for(each)
        click.echo("\nanswer with: rookery answer ASK NUMBER-OR-TEXT")


@click.command()
@click.argument("ask")
@click.argument("text", nargs=-1)
@click.option("--similar", is_flag=True, help="Answer what the same agent asks in the same way along with it.")
@click.option("--dismiss", is_flag=True, help="Give no answer; the agent is told to decide by itself.")
@managing
def answer(ask: str, text: tuple[str, ...], similar: bool, dismiss: bool, home: str | None, as_json: bool) -> None:
    """Answer an agent: by the number of an option, or in your own words.

    ASK is an id or its first eight characters. Where a decision is wanted, say approve, approve for 2 hours, deny,
    deny: why, or later. The first answer counts, wherever it comes from.
    """
    if dismiss == bool(text):
        raise click.UsageError("give an answer, or --dismiss")
    told: dict[str, Any] = {"dismiss": True} if dismiss else {"answer": " ".join(text)}
    if similar and not dismiss:
        told["seen_ms"] = _seen(home, ask, quiet=as_json)
    found = call_as_owner(home, "answer_ask", {"ask_id": ask, "similar": similar, **told})["asks"]
    listing(found, DECIDED, as_json=as_json)
    if not as_json and any(each["put_off"] for each in found):
        click.echo("\nit stays open; the agent comes back for the answer")


def _seen(home: str | None, ask: str, *, quiet: bool) -> int:
    """When the newest was asked of those that are decided together; they are shown, unless `quiet`."""
    one = _one(home, ask)
    those = call_as_owner(home, "list_asks", {"limit": 200})["asks"]
    alike = [each for each in those if all(each[part] == one[part] for part in ("agent", "kind", "subject"))]
    for each in () if quiet else alike:
        _what_for(each)
    return max([one["created_ms"], *(each["created_ms"] for each in alike)])


def _one(home: str | None, ask: str) -> dict[str, Any]:
    """The ask with all its fields."""
    found = call_as_owner(home, "list_asks", {"ask_id": ask})["asks"][0]
    return {**found, "waited": waited(found["waited_s"])}


def _show(ask: dict[str, Any], *, as_json: bool) -> None:
    """One ask with everything about it; what it is about, line by line."""
    context = ask["context"].split("\n")
    if as_json or len(context) < 2:
        fields(ask, as_json=as_json)
        return
    fields({name: value for name, value in ask.items() if name != "context"}, as_json=False)
    click.echo("context")
    for line in context:
        click.echo(f"  {cell(line)}")


def _what_for(ask: dict[str, Any]) -> None:
    """The first lines of what a decision is about: nobody should agree to what they have not seen."""
    lines = ask["context"].split("\n")
    if ask["kind"] in ("question", "elicitation") or lines == [""]:
        return
    click.echo(f"\n{ask['short']}")
    for line in lines[:SHOWN_LINES]:
        click.echo(f"  {cell(line)}")
    if len(lines) > SHOWN_LINES:
        click.echo(f"  … rookery asks {ask['short']} shows the rest")


def waited(seconds: int) -> str:
    """A time in its largest unit, such as 3 h."""
    size, unit = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    return f"{seconds // size} {unit}"
