"""`rookery token`: credentials for clients that connect over HTTP."""

import click

from rookery.cli.options import ListByDefault, given, managing, moment, names
from rookery.cli.session import call_as_owner
from rookery.cli.show import fields, listing, print_json


@click.group(cls=ListByDefault)
def token() -> None:
    """Bearer tokens for clients that connect over HTTP."""


@token.command("list")
@managing
def list_(home: str | None, as_json: bool) -> None:
    """List all tokens, ended ones included; never their secrets."""
    found = call_as_owner(home, "list_tokens")["tokens"]
    shown = ["id", "name", "holder_kind", "holder", "scopes", "agent_type", "project", "expires_at", "revoked"]
    listing(found, shown, as_json=as_json, empty="There are no tokens.")


@token.command()
@click.argument("name")
@click.option("--agent", help="The agent that it acts as; the owner if absent.")
@click.option(
    "--scopes", type=names, metavar="A,B", help="Such as tracker:*,tool:ping; everything its holder may if absent."
)
@click.option("--agent-type", metavar="PROFILE", help="The profile of its sessions, such as worker.")
@click.option("--project", metavar="SLUG", help="The project of its sessions; the default one if absent.")
@click.option("--expires", type=moment, metavar="30d|TIME", help="When it ends; until revoked if absent.")
@managing
def create(
    name: str,
    agent: str | None,
    scopes: list[str] | None,
    agent_type: str | None,
    project: str | None,
    expires: str | None,
    home: str | None,
    as_json: bool,
) -> None:
    """Make a token and print its secret, this once only."""
    arguments = given(name=name, agent=agent, scopes=scopes, agent_type=agent_type, project=project, expires_at=expires)
    made = call_as_owner(home, "create_token", arguments)
    if as_json:
        print_json(made)
        return
    # Alone on stdout, so that a script can take it as it is.
    click.echo(made["secret"])
    holder, until = agent or "the owner", made["expires_at"] or "it is revoked"
    click.echo(f"{made['id']} acts as {holder} until {until}. The secret is not shown again.", err=True)


@token.command()
@click.argument("token_id", metavar="ID")
@managing
def revoke(token_id: str, home: str | None, as_json: bool) -> None:
    """End a token now."""
    fields(call_as_owner(home, "revoke_token", {"id": token_id}), as_json=as_json)
