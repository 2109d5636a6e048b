"""`rookery profiles`: narrow the tools of an agent type."""

import click

from rookery.cli.options import ListByDefault, given, managing, names, names_or_default
from rookery.cli.session import call_as_owner
from rookery.cli.show import fields, listing


@click.group(cls=ListByDefault)
def profiles() -> None:
    """Profiles, the agent types, and the tools that each keeps."""


@profiles.command("list")
@managing
def list_(home: str | None, as_json: bool) -> None:
    """List the profiles with their allowed and disallowed tools; - where nothing is set."""
    found = call_as_owner(home, "list_profiles")["profiles"]
    shown = ["profile", "allowed", "disallowed", "warnings"]
    listing(found, shown, as_json=as_json)


@profiles.command("set")
@click.argument("profile", metavar="TYPE")
@click.option("--allowed", type=names_or_default, metavar="A,B", help="Keep only these; none; default lifts the limit.")
@click.option("--disallowed", type=names, metavar="A,B", help="Take these away; none takes nothing away.")
@managing
def set_(
    profile: str,
    allowed: list[str] | str | None,
    disallowed: list[str] | None,
    home: str | None,
    as_json: bool,
) -> None:
    """Narrow the tools of every agent of a type. It never adds any."""
    changes = given(allowed=allowed, disallowed=disallowed)
    if not changes:
        raise click.UsageError("nothing to change; give --allowed or --disallowed")
    fields(call_as_owner(home, "set_profile_tools", {"profile": profile, **changes}), as_json=as_json)
