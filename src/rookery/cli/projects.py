"""`rookery projects`: what sessions are bound to."""

import click

from rookery.cli.options import ListByDefault, given, managing
from rookery.cli.session import call_as_owner
from rookery.cli.show import fields, listing


@click.group(cls=ListByDefault)
def projects() -> None:
    """Projects that sessions are bound to."""


@projects.command("list")
@managing
def list_(home: str | None, as_json: bool) -> None:
    """List the projects."""
    found = call_as_owner(home, "list_projects")["projects"]
    shown = ["slug", "id", "name", "path"]
    listing(found, shown, as_json=as_json)


@projects.command()
@click.argument("slug")
@click.option("--name", help="The name for people; the slug if absent.")
@click.option("--path", help="The folder of its repository on this machine.")
@managing
def create(slug: str, name: str | None, path: str | None, home: str | None, as_json: bool) -> None:
    """Create a project."""
    arguments = given(slug=slug, name=name, path=path)
    fields(call_as_owner(home, "create_project", arguments), as_json=as_json)
