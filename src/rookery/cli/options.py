"""Options and argument types that several commands share."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

home_option = click.option("--home", metavar="FOLDER", help="The home folder; $ROOKERY_HOME or ~/.rookery if absent.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_SPAN = re.compile(r"^(\d{1,6})([mhd])$")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def managing(function: F) -> F:
    """The options of every command that manages something."""
    return home_option(json_option(function))


class ListByDefault(click.Group):
    """A group that lists when it is given no command: `rookery agents --json` is `rookery agents list --json`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def names(text: str) -> list[str]:
    """Names with commas between them; `none` is the empty list."""
    found = [name.strip() for name in text.split(",")]
    if found == ["none"]:
        return []
    if not all(found):
        # An unset variable of a shell must not be taken for a decision.
        raise click.BadParameter("a name is empty; write none for no names at all")
    return found


def names_or_default(text: str) -> list[str] | str:
    """Names as above; `default` stands for itself."""
    return text if text == "default" else names(text)


def moment(text: str) -> str:
    """A time to come as ISO 8601: `90m`, `12h`, `30d` from now, or a time with a zone."""
    span = _SPAN.match(text)
    if span:
        end = datetime.now(UTC) + timedelta(**{_UNITS[span[2]]: int(span[1])})
        return end.isoformat(timespec="seconds")
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no time; write 90m, 12h, 30d or 2030-01-31T12:00:00Z") from None
    if found.tzinfo is None:
        raise click.BadParameter(f"{text!r} has no zone; add Z or an offset such as +02:00")
    return found.isoformat()


def given(**values: Any) -> dict[str, Any]:
    """Those of `values` that were given: a tool takes an absent argument for "unchanged"."""
    return {name: value for name, value in values.items() if value is not None}
