"""`rookery call`: call any tool, as any session could."""

import json
import sys
from typing import Any, cast

import click

from rookery.cli.failure import known_error
from rookery.cli.session import Bound, call_tool, flag_options, flags_of
from rookery.cli.show import print_json
from rookery.core.errors import InvalidParams


@click.command()
@click.argument("tool")
@click.argument("arguments", metavar="[JSON]", required=False)
@click.option(
    "--set",
    "pairs",
    metavar="NAME=VALUE",
    multiple=True,
    help="One argument; taken as JSON where it is JSON, else as text. May be repeated.",
)
@click.option("--text", is_flag=True, help="Print the text that clients show instead of JSON.")
@flag_options(leave_out=("--direct",))
def call(tool: str, arguments: str | None, pairs: tuple[str, ...], text: bool, **bound: Bound) -> None:
    """Call a tool and print its result as JSON.

    JSON is an object with the tool's arguments, `-` reads it from standard input. The call is decided, recorded and
    limited like any other; without --as-owner it is the default agent's. A failure is printed as JSON on stderr,
    with exit code 1.
    """
    flags = flags_of(bound)
    try:
        result = call_tool(flags, tool, read_arguments(arguments, pairs))
    except Exception as error:
        known = known_error(error)
        if known is None:
            raise
        click.echo(json.dumps({"error": known.as_dict()}, indent=2, ensure_ascii=False), err=True)
        sys.exit(1)
    if text:
        click.echo(result.text)
    else:
        print_json(result.structured)


def read_arguments(text: str | None, pairs: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of a call: the JSON object, then each NAME=VALUE over it."""
    value: Any = {}
    if text is not None:
        try:
            value = json.loads(sys.stdin.read() if text == "-" else text)
        except ValueError as error:
            raise InvalidParams(
                f"the arguments are not JSON: {error}", hint='write them like \'{"name": "ada"}\''
            ) from None
    if not isinstance(value, dict):
        raise InvalidParams("the arguments are not a JSON object", hint='write them like \'{"name": "ada"}\'')
    arguments = cast("dict[str, Any]", value)
    for pair in pairs:
        name, equals, given = pair.partition("=")
        if not equals or not name:
            raise InvalidParams(f"--set {pair} names no value", hint="write --set name=value")
        arguments[name] = _value(given)
    return arguments


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
