"""`rookery projects`: what sessions are bound to."""

import os
from typing import Any

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
    shown = ["slug", "id", "name", "path", "members"]
    if not as_json:
        found = [{**each, "members": _shown(each["members"])} for each in found]
    listing(found, shown, as_json=as_json)


@projects.command()
@click.argument("slug")
@click.option("--name", help="The name for people; the slug if absent.")
@click.option("--path", help="The folder of its repository on this machine.")
@managing
def create(slug: str, name: str | None, path: str | None, home: str | None, as_json: bool) -> None:
    """Create a project."""
    # The server was started elsewhere, so only this command knows what `.` is.
    arguments = given(slug=slug, name=name, path=os.path.abspath(path) if path else path)
    _print(call_as_owner(home, "create_project", arguments), as_json)


@projects.command()
@click.argument("slug")
@click.argument("path")
@managing
def folder(slug: str, path: str, home: str | None, as_json: bool) -> None:
    """Give a project the folder of its repository on this machine, or another one."""
    from rookery.engine.first_run import give_folder

    fields(call_as_owner(home, give_folder, {"project": slug, "path": os.path.abspath(path)}), as_json=as_json)


@projects.command()
@click.argument("slug")
@click.argument("agents", nargs=-1, metavar="[AGENT]...")
@click.option("--everyone", is_flag=True, help="Open it to every agent.")
@click.option("--nobody", is_flag=True, help="Close it to every agent; people still enter.")
@managing
def members(slug: str, agents: tuple[str, ...], everyone: bool, nobody: bool, home: str | None, as_json: bool) -> None:
    """Close a project to all agents but these, or open it again. Sessions of others lose it at once."""
    if [bool(agents), everyone, nobody].count(True) != 1:
        raise click.UsageError("name the agents that may enter, or give --everyone or --nobody")
    arguments = {"project": slug, "agents": "everyone" if everyone else list(agents)}
    _print(call_as_owner(home, "set_project_members", arguments), as_json)


def _shown(members: list[str] | None) -> list[str] | str:
    return "everyone" if members is None else members


def _print(project: dict[str, Any], as_json: bool) -> None:
    fields(project if as_json else {**project, "members": _shown(project["members"])}, as_json=as_json)
