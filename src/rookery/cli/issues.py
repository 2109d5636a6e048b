"""`rookery issues`: what is to be done, seen and steered by its owner."""

from dataclasses import asdict
from typing import Any

import click

from rookery.cli.options import ListByDefault, given, managing
from rookery.cli.session import actor_of, call_as_owner, opened, owner_flags
from rookery.cli.show import fields, listing, print_json

project_option = click.option("--project", metavar="SLUG", help="The project; the default one if absent.")


@click.group(cls=ListByDefault)
def issues() -> None:
    """Issues of a project, and moving them on."""


@issues.command("list")
@click.option("--status", help="Only these: backlog, todo, in_progress, review, blocked, done or cancelled.")
@click.option("--label", help="Only with this label, such as phase:ready.")
@click.option("--limit", type=int, help="At most this many; 50 if absent.")
@project_option
@managing
def list_(
    status: str | None, label: str | None, limit: int | None, project: str | None, home: str | None, as_json: bool
) -> None:
    """List the issues, urgent ones first, then the oldest."""
    arguments = given(status=status, labels=label, limit=limit)
    found = call_as_owner(home, "list_issues", arguments, project=project)["issues"]
    shown = ["identifier", "status", "priority", "labels", "title"]
    listing(found, shown, as_json=as_json, empty="no issues; make one: rookery issues create TITLE")


@issues.command()
@project_option
@managing
def ready(project: str | None, home: str | None, as_json: bool) -> None:
    """List what could be worked on now."""
    found = call_as_owner(home, "list_ready_issues", project=project)["issues"]
    listing(found, ["identifier", "priority", "labels", "title"], as_json=as_json, empty="nothing is ready")


@issues.command()
@click.argument("issue")
@managing
def show(issue: str, home: str | None, as_json: bool) -> None:
    """Show an issue, by id or identifier, with everything recorded about it."""
    if as_json:
        print_json(call_as_owner(home, "get_issue", {"issue_id": issue, "include_history": True}))
        return
    import asyncio

    flags = owner_flags(home)
    with opened(flags) as platform:
        actor = actor_of(platform, {"source": "cli", **flags})
        (contents,) = asyncio.run(platform.calls.read(actor, f"issue://{issue}"))
    click.echo(contents.text)


@issues.command()
@click.argument("title")
@click.option("--description", help="Details in Markdown.")
@click.option("--priority", type=int, help="1 urgent to 4 low; 3 if absent.")
@click.option("--label", "labels", multiple=True, help="A label; phase:research starts at the pipeline's beginning.")
@click.option("--depends-on", multiple=True, metavar="ISSUE", help="An issue that must be done first.")
@project_option
@managing
def create(
    title: str,
    description: str | None,
    priority: int | None,
    labels: tuple[str, ...],
    depends_on: tuple[str, ...],
    project: str | None,
    home: str | None,
    as_json: bool,
) -> None:
    """Create an issue. It is ready to be worked on unless a label names an earlier phase."""
    lists: dict[str, Any] = {"labels": list(labels), "depends_on": list(depends_on)}
    arguments = given(title=title, description=description, priority=priority, **lists)
    fields(call_as_owner(home, "create_issue", arguments, project=project), as_json=as_json)


@issues.command()
@click.argument("issue")
@click.argument("status")
@click.option("--reason", help="Why; kept as a comment.")
@click.option("--project", metavar="SLUG", help="The project; the one that the issue is in if absent.")
@managing
def move(issue: str, status: str, reason: str | None, project: str | None, home: str | None, as_json: bool) -> None:
    """Move an issue to another status, as the state machine lets a person."""
    arguments = given(issue_id=issue, status=status, reason=reason)
    found = project or _project_of(home, issue)
    fields(call_as_owner(home, "set_issue_status", arguments, project=found), as_json=as_json)


@issues.command()
@click.argument("issue")
@click.option("--title", help="Another title.")
@click.option("--priority", type=int, help="1 urgent to 4 low.")
@click.option("--phase", help="Another phase of the pipeline.")
@click.option("--add-label", multiple=True, metavar="LABEL", help="A label more, such as skip:architecture.")
@click.option("--remove-label", multiple=True, metavar="LABEL", help="A label less, such as needs-planning.")
@click.option("--depends-on", multiple=True, metavar="ISSUE", help="All that must be done first, instead of before.")
@click.option("--independent", is_flag=True, help="Nothing has to be done first.")
@managing
def edit(
    issue: str,
    title: str | None,
    priority: int | None,
    phase: str | None,
    add_label: tuple[str, ...],
    remove_label: tuple[str, ...],
    depends_on: tuple[str, ...],
    independent: bool,
    home: str | None,
    as_json: bool,
) -> None:
    """Change an issue that is not finished; its history says what was changed."""
    labels: list[str] | None = None
    if add_label or remove_label:
        found = call_as_owner(home, "get_issue", {"issue_id": issue})["labels"]
        kept = {label for label in found if not label.startswith("phase:")}
        labels = sorted((kept | set(add_label)) - set(remove_label))
    arguments = given(issue_id=issue, title=title, priority=priority, phase=phase)
    # An empty list takes all of them away.
    arguments |= {} if labels is None else {"labels": labels}
    arguments |= {"depends_on": list(depends_on)} if depends_on or independent else {}
    fields(call_as_owner(home, "edit_issue", arguments, project=_project_of(home, issue)), as_json=as_json)


@issues.command()
@project_option
@managing
def advance(project: str | None, home: str | None, as_json: bool) -> None:
    """Act on claims and verdicts that wait: what the orchestrator does on its tick, once."""
    import asyncio

    from rookery.domains.tracker import advance as pipeline

    flags = owner_flags(home, project)
    with opened(flags) as platform:
        actor = actor_of(platform, flags)
        done = asyncio.run(pipeline.advance(platform.calls, actor.tenant, actor.project or ""))
    found = [asdict(each) for each in done]
    listing(found, ["issue", "outcome", "detail", "finding"], as_json=as_json, empty="nothing waits")


def _project_of(home: str | None, issue: str) -> str | None:
    """The id of the project that an issue is in, or None if there is no such issue."""
    from rookery.identity.store import DEFAULT_TENANT
    from rookery.lifecycle.issue_ref import find_issue

    with opened(owner_flags(home)) as platform:
        row = platform.database.direct(lambda tx: find_issue(tx, DEFAULT_TENANT, issue))
    return None if row is None else row.project_id
