"""`rookery work`: coding work that agents do by themselves, and how a project's work is prepared and checked."""

from typing import Any

import click

from rookery.cli.options import ListByDefault, given, managing
from rookery.cli.session import call_as_owner, call_tool, flags_of, owner_flags
from rookery.cli.show import fields, listing

LINE = ["id", "status", "branch_name", "description"]
project_option = click.option("--project", metavar="SLUG", help="The project; the default one if absent.")


@click.group(cls=ListByDefault)
def work() -> None:
    """Work tasks of agents, and how their work is checked."""


@work.command("list")
@click.option("--status", help="Only tasks in this state.")
@click.option("--limit", type=int, help="At most this many, up to 50; 20 if absent.")
@managing
def list_(status: str | None, limit: int | None, home: str | None, as_json: bool) -> None:
    """List the tasks of all agents, newest first."""
    found = call_as_owner(home, "list_work_tasks", given(status=status, limit=limit))["tasks"]
    listing(found, LINE, as_json=as_json, empty="no work tasks; make one: rookery work create DESCRIPTION")


@work.command()
@click.argument("task")
@managing
def show(task: str, home: str | None, as_json: bool) -> None:
    """Show a task: how far it is, its branch, what it proposes, and how it ended."""
    shown = call_as_owner(home, "get_work_task", {"task_id": task})
    if not as_json and (proposed := shown["pull_request"]):
        shown["pull_request"] = _proposed(proposed)
    fields(shown, as_json=as_json)


def _proposed(record: dict[str, Any]) -> str:
    """A pull request in a line."""
    said = [f"{record['commits']} commits to {record['base_branch'] or record['base']}"]
    if "changed_files" in record:
        said.append(f"+{record['added']} -{record['deleted']} in {record['changed_files']} files")
        said.append(f"risk {record['risk']} ({record['risk_level']}): {'; '.join(record['risk_reasons'])}")
    return ", ".join([*said, *([record["unmeasured"]] if "unmeasured" in record else [])])


@work.command()
@click.argument("description")
@click.option("--agent", metavar="NAME", help="Which agent works; the default agent if absent.")
@click.option("--key", help="A key of your own: the same key gives the same task.")
@project_option
@managing
def create(
    description: str, agent: str | None, key: str | None, project: str | None, home: str | None, as_json: bool
) -> None:
    """Have an agent do coding work on a branch of its own, in the folder of the project.

    With --agent the task is created as if that agent had asked for it, so its rights and its daily limit count.
    """
    flags = owner_flags(home, project)
    if agent is not None:
        flags = flags_of({"home": home, "agent": agent, "project_id": project})
    arguments = given(description=description, source_id=key)
    made = call_tool(flags, "create_work_task", arguments).structured
    fields({name: made[name] for name in ("id", "status", "branch_name")}, as_json=as_json)


@work.command()
@click.argument("task")
@managing
def cancel(task: str, home: str | None, as_json: bool) -> None:
    """Stop a task. What it has done so far stays on its branch."""
    shown = call_as_owner(home, "cancel_work_task", {"task_id": task})
    fields({name: shown[name] for name in ("id", "status", "branch_name", "error")}, as_json=as_json)


@work.command()
@click.option("--install", metavar="COMMAND", help="Prepares a fresh working tree; '' for nothing.")
@click.option("--check", "checks", multiple=True, metavar="COMMAND", help="Must succeed; give it for each, in order.")
@click.option("--no-checks", is_flag=True, help="Let work be finished unchecked.")
@click.option("--limit-s", type=int, metavar="SECONDS", help="How long each command may take; 900 at first.")
@project_option
@managing
def settings(
    install: str | None,
    checks: tuple[str, ...],
    no_checks: bool,
    limit_s: int | None,
    project: str | None,
    home: str | None,
    as_json: bool,
) -> None:
    """Show how a project's work is prepared and checked, or set it. The commands run on this machine, as this user."""
    if checks and no_checks:
        raise click.UsageError("give --check or --no-checks, not both")
    listed = [] if no_checks else list(checks) or None
    fields(_configure(home, project, given(install=install, checks=listed, limit_s=limit_s)), as_json=as_json)


def _configure(home: str | None, project: str | None, arguments: dict[str, Any]) -> dict[str, Any]:
    from rookery.domains.work.project_settings import configure_work

    return call_as_owner(home, configure_work, arguments, project=project)
