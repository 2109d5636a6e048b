"""`rookery orchestrator`: which projects agents work on by themselves, how, and what goes on."""

from typing import TYPE_CHECKING, Any

import click

from rookery.cli.options import given, managing
from rookery.cli.orchestrator_options import given_settings, setting_options
from rookery.cli.orchestrator_view import tell_dispatches, tell_settings, tell_status, tell_why
from rookery.cli.session import call_as_owner
from rookery.cli.show import print_json

if TYPE_CHECKING:
    pass

project_option = click.option("--project", metavar="SLUG", help="The project; the default one if absent.")
any_project_option = click.option("--project", metavar="SLUG", help="Only this project; all of them if absent.")


@click.group()
def orchestrator() -> None:
    """Agents that work on issues by themselves: what goes on, and how."""


@orchestrator.command()
@any_project_option
@managing
def status(project: str | None, home: str | None, as_json: bool) -> None:
    """Show who leads, what goes on, what is tried again when, what begins next, and what the rest waits for."""
    from rookery.engine.owner_commands import orchestrator_status

    told = call_as_owner(home, orchestrator_status, given(project=project))
    print_json(told) if as_json else tell_status(told)


@orchestrator.command()
@project_option
@managing
def enable(project: str | None, home: str | None, as_json: bool) -> None:
    """Let agents work on the issues of a project. They cost money: see the budgets of `configure`."""
    _configure(home, project, {"enabled": True}, as_json)


@orchestrator.command()
@project_option
@managing
def disable(project: str | None, home: str | None, as_json: bool) -> None:
    """Begin nothing more in a project. What goes on there comes to its end; `rookery pause` stops it."""
    _configure(home, project, {"enabled": False}, as_json)


@orchestrator.command()
@click.argument("issue")
@managing
def why(issue: str, home: str | None, as_json: bool) -> None:
    """Say why no agent works on an issue now."""
    told = call_as_owner(home, "why_waiting", {"issue_id": issue})
    if as_json:
        print_json(told)
        return
    tell_why(told, _last_attempt(home, issue) if told["code"] in ("retry", "status") else None)


@orchestrator.command()
@click.option("--issue", metavar="ISSUE", help="Only of this issue.")
@click.option("--state", type=click.Choice(("live", "ended")), help="Only these.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="At most this many.")
@any_project_option
@managing
def dispatches(
    issue: str | None, state: str | None, limit: int, project: str | None, home: str | None, as_json: bool
) -> None:
    """List the attempts to let agents do something, newest first."""
    from rookery.engine.owner_commands import list_dispatches

    arguments = given(issue_id=issue, state=state, limit=limit, project=project)
    found = call_as_owner(home, list_dispatches, arguments)["dispatches"]
    print_json(found) if as_json else tell_dispatches(found)


@orchestrator.command()
@setting_options
@project_option
@managing
def configure(project: str | None, home: str | None, as_json: bool, **said: Any) -> None:
    """Set how a project is worked on, or show it. Commands run on the machines of the workers, as their user."""
    _configure(home, project, given_settings(said), as_json)


def _last_attempt(home: str | None, issue: str) -> dict[str, Any] | None:
    """How the newest attempt at the issue ended; None if there was none."""
    from rookery.engine.owner_commands import list_dispatches

    arguments = {"issue_id": issue, "state": "ended", "limit": 1}
    return next(iter(call_as_owner(home, list_dispatches, arguments)["dispatches"]), None)


def _configure(home: str | None, project: str | None, arguments: dict[str, Any], as_json: bool) -> None:
    from rookery.engine.owner_commands import configure_orchestrator

    told = call_as_owner(home, configure_orchestrator, arguments, project=project)
    print_json(told) if as_json else tell_settings(told)
