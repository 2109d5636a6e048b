"""`rookery grants`: exceptions that the owner makes."""

import click

from rookery.cli.options import ListByDefault, given, managing, moment
from rookery.cli.session import call_as_owner
from rookery.cli.show import fields, listing


@click.group(cls=ListByDefault)
def grants() -> None:
    """Single tools that the owner gave to single agents."""


@grants.command("list")
@managing
def list_(home: str | None, as_json: bool) -> None:
    """List all grants, ended ones included."""
    found = call_as_owner(home, "list_grants")["grants"]
    shown = ["id", "agent", "tool", "expires_at", "revoked", "reason"]
    listing(found, shown, as_json=as_json, empty="There are no grants.")


@grants.command()
@click.argument("agent")
@click.argument("tool")
@click.option("--reason", help="Why, for the record.")
@click.option("--expires", type=moment, metavar="30d|TIME", help="When it ends; until revoked if absent.")
@managing
def add(agent: str, tool: str, reason: str | None, expires: str | None, home: str | None, as_json: bool) -> None:
    """Give one agent one tool, privileged ones included."""
    arguments = given(agent=agent, tool=tool, reason=reason, expires_at=expires)
    fields(call_as_owner(home, "grant_tool", arguments), as_json=as_json)


@grants.command()
@click.argument("grant", metavar="ID")
@managing
def revoke(grant: str, home: str | None, as_json: bool) -> None:
    """End a grant now."""
    fields(call_as_owner(home, "revoke_grant", {"id": grant}), as_json=as_json)
