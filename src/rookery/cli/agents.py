"""`rookery agents`: who there is, and what each may do."""

from typing import Any

import click

from rookery.cli.options import ListByDefault, given, managing, names, names_or_default
from rookery.cli.session import call_as_owner
from rookery.cli.show import fields, listing


@click.group(cls=ListByDefault)
def agents() -> None:
    """Agents and what each of them may do."""


@agents.command("list")
@managing
def list_(home: str | None, as_json: bool) -> None:
    """List the agents with their tools, bundles, mode and trust."""
    found = call_as_owner(home, "list_agent_settings")["agents"]
    if not as_json:
        found = [{**agent, "permissions": agent["permissions"] or _said(agent)} for agent in found]
    shown = ["name", "id", "permissions", "bundles", "mode", "trust", "restrict_networking"]
    listing(found, shown, as_json=as_json)


def _said(agent: dict[str, Any]) -> str:
    return "default" if agent["permissions"] is None else "none"


@agents.command()
@click.argument("name")
@click.option(
    "--permissions", type=names, metavar="A,B", help="Exactly these tools, or none; the default set if absent."
)
@managing
def create(name: str, permissions: list[str] | None, home: str | None, as_json: bool) -> None:
    """Create an agent."""
    arguments = given(name=name, permissions=permissions)
    fields(call_as_owner(home, "create_agent", arguments), as_json=as_json)


@agents.command("set")
@click.argument("name")
@click.option("--permissions", type=names_or_default, metavar="A,B", help="Exactly these tools, none, or default.")
@click.option("--mode", type=click.Choice(["ask", "act", "autonomy"]), help="What needs a person's yes.")
@click.option("--trust", type=click.IntRange(0, 4), help="0 untrusted to 4 verified.")
@click.option(
    "--restrict-networking/--no-restrict-networking",
    default=None,
    help="Whether sessions that other agents start lose the tools that reach agents.",
)
@managing
def set_(
    name: str,
    permissions: list[str] | str | None,
    mode: str | None,
    trust: int | None,
    restrict_networking: bool | None,
    home: str | None,
    as_json: bool,
) -> None:
    """Change what an agent may do; its live sessions follow at once."""
    changes = given(permissions=permissions, mode=mode, trust=trust, restrict_networking=restrict_networking)
    if not changes:
        raise click.UsageError("nothing to change; give at least one option")
    fields(call_as_owner(home, "update_agent", {"agent": name, **changes}), as_json=as_json)
