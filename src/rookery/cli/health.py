"""`rookery health`: probes a project's code, and shows how its counts move."""

from typing import Any

import click

from rookery.cli.options import given, managing
from rookery.cli.session import actor_of, call_as_owner, opened, owner_flags
from rookery.cli.show import fields, print_json

DEFAULT_PROJECT = "default"
project_option = click.option("--project", metavar="SLUG", help="The project; the default one if absent.")


@click.group()
def health() -> None:
    """The health of a project's code: probes, counts and trends."""


@health.command()
@project_option
@managing
def collect(project: str | None, home: str | None, as_json: bool) -> None:
    """Run the probes of a project side by side and keep what they count.

    Types, tests and outdated dependencies are counted by the commands of `rookery health settings`; notes and large
    files without any. A probe that fails or takes too long says so, and the others count.
    """
    import asyncio

    from rookery.cli.health_progress import watching

    flags = owner_flags(home, project)
    with opened(flags) as platform, watching(quiet=as_json) as door:
        actor = actor_of(platform, {"source": "cli", **flags})
        found = asyncio.run(platform.calls.call(actor, "collect_health", {}, door=door)).structured
    if as_json:
        print_json(found)
        return
    fields({name: value for name, value in found["snapshot"].items() if name.endswith("_count")}, as_json=False)
    _explain(found)


@health.command()
@click.option("--days", type=int, help="Only what was counted in so many days.")
@click.option("--limit", type=int, help="At most so many snapshots, up to 100; 10 if absent.")
@project_option
@managing
def trends(days: int | None, limit: int | None, project: str | None, home: str | None, as_json: bool) -> None:
    """Show the newest snapshot, and whether each count gets better."""
    from rookery.cli.session import call_tool

    named = given(project_id=project or DEFAULT_PROJECT, days=days, limit=limit)
    found = call_tool(owner_flags(home, project), "check_health_trends", named)
    print_json(found.structured) if as_json else click.echo(found.text)


@health.command()
@click.option("--types", metavar="COMMAND", help="Checks types, such as pyright or npx tsc --noEmit; '' for nothing.")
@click.option("--tests", metavar="COMMAND", help="Runs the tests, such as pytest -q; '' for nothing.")
@click.option("--outdated", metavar="COMMAND", help="Lists outdated dependencies, one a line or as JSON.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Files whose notes and sizes do not count.")
@click.option("--no-exclude", is_flag=True, help="Let all files count again.")
@click.option("--large-lines", type=int, metavar="LINES", help="A file with more lines is large; 500 at first.")
@click.option("--limit-s", type=int, metavar="SECONDS", help="How long each probe may take; 60 at first.")
@project_option
@managing
def settings(
    exclude: tuple[str, ...], no_exclude: bool, project: str | None, home: str | None, as_json: bool, **values: Any
) -> None:
    """Show what is looked at in a project, or set it. The commands run as whoever runs Rookery."""
    if exclude and no_exclude:
        raise click.UsageError("give --exclude or --no-exclude, not both")
    listed = [] if no_exclude else list(exclude) or None
    fields(_configure(home, project, given(exclude=listed, **values)), as_json=as_json)


@health.command()
@click.argument("counts", nargs=-1, required=True, metavar="METRIC=COUNT...")
@project_option
@managing
def record(counts: tuple[str, ...], project: str | None, home: str | None, as_json: bool) -> None:
    """Keep counts that were found elsewhere, such as in a build: tsc_errors=3 test_failures=0."""
    arguments = {"counts": dict(_count(each) for each in counts)}
    found = call_as_owner(home, "record_health_snapshot", arguments, project=project)["snapshot"]
    fields(found, as_json=as_json)


def _count(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not number.isascii() or not number.isdigit():
        raise click.BadParameter(f"{text!r} is no METRIC=COUNT, such as todos=12")
    return name, int(number)


def _explain(found: dict[str, Any]) -> None:
    """Which probes have no count and why, for whoever saw only a number that is missing."""
    from rookery.cli.show import cell

    for probe, reason in found["missing"].items():
        click.echo(f"{probe} not counted: {cell(reason.splitlines()[-1])}", err=True)


def _configure(home: str | None, project: str | None, arguments: dict[str, Any]) -> dict[str, Any]:
    from rookery.domains.health.project_settings import configure_health

    return call_as_owner(home, configure_health, arguments, project=project)
