"""`rookery bundles`: sets of tools that several agents share."""

import click

from rookery.cli.options import ListByDefault, given, managing, names
from rookery.cli.session import call_as_owner
from rookery.cli.show import fields, listing


@click.group(cls=ListByDefault)
def bundles() -> None:
    """Bundles of tools that agents and projects share."""


@bundles.command("list")
@managing
def list_(home: str | None, as_json: bool) -> None:
    """List the bundles, presets first."""
    found = call_as_owner(home, "list_bundles")["bundles"]
    shown = ["name", "id", "preset", "tools", "description"]
    listing(found, shown, as_json=as_json)


@bundles.command()
@click.argument("name")
@click.option("--tools", type=names, metavar="A,B", required=True, help="What its holders get.")
@click.option("--description", help="What it is for.")
@click.option("--prompt", help="Text that is added to the prompts of its holders.")
@managing
def save(
    name: str,
    tools: list[str],
    description: str | None,
    prompt: str | None,
    home: str | None,
    as_json: bool,
) -> None:
    """Create a bundle, or replace one of the same name. Presets cannot be replaced."""
    arguments = given(name=name, tools=tools, description=description, prompt=prompt)
    fields(call_as_owner(home, "save_bundle", arguments), as_json=as_json)


@bundles.command()
@click.argument("bundle")
@managing
def delete(bundle: str, home: str | None, as_json: bool) -> None:
    """Delete a bundle and take it from all who hold it."""
    fields(call_as_owner(home, "delete_bundle", {"bundle": bundle}), as_json=as_json)


@bundles.command()
@click.argument("bundle")
@click.option("--agent", help="The agent that gets it.")
@click.option("--project", help="The project whose agents get it.")
@click.option("--remove", is_flag=True, help="Take it away instead.")
@managing
def assign(bundle: str, agent: str | None, project: str | None, remove: bool, home: str | None, as_json: bool) -> None:
    """Give a bundle to an agent or to a project, or take it away."""
    arguments = given(bundle=bundle, agent=agent, project=project, remove=remove)
    fields(call_as_owner(home, "assign_bundle", arguments), as_json=as_json)
