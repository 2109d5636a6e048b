"""`rookery grants`: exceptions that the owner makes."""

from typing import Any

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
    shown = ["id", "agent", "tool", "expires_at", "without_approval", "revoked", "reason"]
    listing(found, shown, as_json=as_json, empty="There are no grants.")


@grants.command()
@click.argument("agent")
@click.argument("tool")
@click.option("--reason", help="Why, for the record.")
@click.option("--expires", type=moment, metavar="30d|TIME", help="When it ends; until revoked if absent.")
@click.option("--without-approval", is_flag=True, default=None, help="Nobody is asked about its calls.")
@managing
def add(agent: str, tool: str, home: str | None, as_json: bool, **options: Any) -> None:
    """Give one agent one tool, privileged ones included. Each call of a privileged one waits for your approval."""
    named = {"expires_at": options.pop("expires"), **options}
    fields(call_as_owner(home, "grant_tool", given(agent=agent, tool=tool, **named)), as_json=as_json)


@grants.command()
@click.argument("grant", metavar="ID")
@managing
def revoke(grant: str, home: str | None, as_json: bool) -> None:
    """End a grant now."""
    fields(call_as_owner(home, "revoke_grant", {"id": grant}), as_json=as_json)
