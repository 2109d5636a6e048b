"""`rookery asks` and `rookery answer`: what agents ask their owner, and the owner's answers."""

import click

from rookery.cli.options import given, managing
from rookery.cli.session import call_as_owner
from rookery.cli.show import fields, listing

LINE = ["short", "kind", "agent", "waited", "question", "options", "similar"]
DECIDED = ["short", "status", "agent", "question", "option", "answer", "answered_by", "via"]
STATUSES = ("open", "answered", "withdrawn", "expired", "all")
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
        fields(_one(home, ask), as_json=as_json)
        return
    found = call_as_owner(home, "list_asks", given(status=status, limit=limit))["asks"]
    for each in found:
        each["waited"] = waited(each["waited_s"])
    empty = "no agent asks anything" if status in (None, "open") else "none"
    listing(found, LINE if status in (None, "open") else DECIDED, as_json=as_json, empty=empty)
    if found and not as_json and status in (None, "open"):
        click.echo("\nanswer with: rookery answer ASK NUMBER-OR-TEXT")


@click.command()
@click.argument("ask")
@click.argument("text")
@click.option("--similar", is_flag=True, help="Answer what the same agent asks in the same words along with it.")
@managing
def answer(ask: str, text: str, similar: bool, home: str | None, as_json: bool) -> None:
    """Answer an agent: by the number of an option, or in your own words.

    ASK is an id or its first eight characters. The first answer counts, wherever it comes from.
    """
    found = call_as_owner(home, "answer_ask", {"ask_id": ask, "answer": text, "similar": similar})["asks"]
    listing(found, DECIDED, as_json=as_json)


def _one(home: str | None, ask: str) -> dict[str, object]:
    """The ask with all its fields."""
    found = call_as_owner(home, "list_asks", {"ask_id": ask})["asks"][0]
    return {**found, "waited": waited(found["waited_s"])}


def waited(seconds: int) -> str:
    """A time in its largest unit, such as 3 h."""
    size, unit = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    return f"{seconds // size} {unit}"
