"""`rookery people`: who may do what with the console, and who is signed in."""

from typing import TYPE_CHECKING

import click

from rookery.cli.options import ListByDefault, given, managing
from rookery.cli.session import call_as_owner
from rookery.cli.show import fields, listing

if TYPE_CHECKING:
    pass

ROLES = click.Choice(["owner", "operator", "viewer"])


@click.group(cls=ListByDefault)
def people() -> None:
    """People, what each of them may do, and where they are signed in."""


@people.command("list")
@managing
def list_(home: str | None, as_json: bool) -> None:
    """List the people with their roles."""
    from rookery.identity.people_commands import list_people

    shown = ["name", "id", "role", "email", "browsers", "seen_at"]
    listing(call_as_owner(home, list_people, {})["people"], shown, as_json=as_json)


@people.command()
@click.argument("name")
@click.option("--role", type=ROLES, required=True, help="What they may do.")
@click.option("--email", metavar="ADDRESS", help="By which a single sign-on knows them.")
@managing
def add(name: str, role: str, email: str | None, home: str | None, as_json: bool) -> None:
    """Add a person. `rookery login --person NAME` prints a link with which they sign in."""
    from rookery.identity.people_commands import add_person

    fields(call_as_owner(home, add_person, given(name=name, role=role, email=email)), as_json=as_json)


@people.command("role")
@click.argument("name")
@click.argument("role", type=ROLES)
@managing
def set_role(name: str, role: str, home: str | None, as_json: bool) -> None:
    """Give a person another role; it counts at once."""
    from rookery.identity.people_commands import change_person

    fields(call_as_owner(home, change_person, {"person": name, "role": role}), as_json=as_json)


@people.command()
@click.argument("name")
@managing
def remove(name: str, home: str | None, as_json: bool) -> None:
    """Remove a person: they are signed out everywhere, and their tokens end."""
    from rookery.identity.people_commands import remove_person

    fields(call_as_owner(home, remove_person, {"person": name}), as_json=as_json)


@people.command("browsers")
@managing
def browsers(home: str | None, as_json: bool) -> None:
    """List the browsers that are signed in to the console."""
    from rookery.identity.browser_commands import list_browsers

    shown = ["id", "person", "device", "created_at", "seen_at"]
    found = call_as_owner(home, list_browsers, {})["browsers"]
    listing(found, shown, as_json=as_json, empty="No browser is signed in.")


@people.command("sign-out")
@click.argument("browser_or_name")
@managing
def sign_out(browser_or_name: str, home: str | None, as_json: bool) -> None:
    """Sign out one browser by its id, or all browsers of a person."""
    from rookery.identity.browser_commands import end_browser

    kind = "id" if browser_or_name.startswith("web-") else "person"
    fields(call_as_owner(home, end_browser, {kind: browser_or_name}), as_json=as_json)
