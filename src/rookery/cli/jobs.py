"""`rookery jobs`: what waits to be done, what is being done, and how it ended."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from rookery.cli.options import ListByDefault, managing
from rookery.cli.session import actor_of, opened, owner_flags
from rookery.cli.show import fields, listing

if TYPE_CHECKING:
    from rookery.app import Platform
    from rookery.jobs.store import Jobs, Row

STATES = ("waiting", "running", "done", "failed", "cancelled")
SHOWN = ("id", "kind", "queue", "state", "when", "attempt", "progress", "error")
_TIMES = ("due_ms", "created_ms", "started_ms", "ended_ms", "lease_ms")


@click.group(cls=ListByDefault)
def jobs() -> None:
    """Deferred work: what waits, what runs, and how it ended."""


@jobs.command("list")
@click.option("--state", "states", type=click.Choice(STATES), multiple=True, help="Only this state; may be repeated.")
@click.option("--kind", help="Only jobs of this kind, such as schedules.fire.")
@click.option("--queue", help="Only jobs of this queue.")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True, help="At most this many.")
@click.option("--watch", is_flag=True, help="Keep on showing them until Ctrl-C.")
@managing
def list_(
    states: tuple[str, ...],
    kind: str | None,
    queue: str | None,
    limit: int,
    watch: bool,
    home: str | None,
    as_json: bool,
) -> None:
    """List jobs, newest first."""
    if watch and as_json:
        raise click.UsageError("--watch draws a table; leave --json out")
    flags = owner_flags(home)
    with opened(flags) as platform:
        look = _looking(platform, actor_of(platform, flags).tenant)

        def page() -> tuple[list[dict[str, Any]], dict[str, int]]:
            return look(
                lambda jobs: (
                    [entry(row) for row in jobs.page(states=states, kind=kind, queue=queue, limit=limit)],
                    in_order(jobs.counts()),
                )
            )

        if watch:
            from rookery.cli.job_watch import follow

            follow(page)
            return
        found, _ = page()
    if not as_json:
        found = [brief(each) for each in found]
    listing(found, SHOWN, as_json=as_json, empty="no jobs")


@jobs.command()
@managing
def counts(home: str | None, as_json: bool) -> None:
    """Count jobs by state."""
    flags = owner_flags(home)
    with opened(flags) as platform:
        found = _looking(platform, actor_of(platform, flags).tenant)(lambda jobs: in_order(jobs.counts()))
    fields(found, as_json=as_json)


@jobs.command()
@click.argument("job_id", metavar="ID", type=int)
@managing
def show(job_id: int, home: str | None, as_json: bool) -> None:
    """Show everything about one job."""
    from rookery.jobs.by_hand import find

    flags = owner_flags(home)
    with opened(flags) as platform:
        tenant = actor_of(platform, flags).tenant
        found = entry(platform.database.direct(lambda tx: find(tx, tenant, job_id)))
    fields(found if as_json else _readable(found), as_json=as_json)


@jobs.command()
@click.argument("job_id", metavar="ID", type=int)
@managing
def cancel(job_id: int, home: str | None, as_json: bool) -> None:
    """Give up a job that waits, or stop one that runs."""
    _by_hand("cancel", job_id, home, as_json)


@jobs.command()
@click.argument("job_id", metavar="ID", type=int)
@managing
def retry(job_id: int, home: str | None, as_json: bool) -> None:
    """Let a job that failed be tried again.

    Refused where its failure has had consequences, such as a failed step of a workflow: start that again instead.
    """
    _by_hand("retry", job_id, home, as_json)


def _by_hand(what: str, job_id: int, home: str | None, as_json: bool) -> None:
    from rookery.cli.recorded import change
    from rookery.jobs import by_hand

    flags = owner_flags(home)
    with opened(flags) as platform:
        done = getattr(by_hand, what)
        row = change(
            platform,
            flags,
            f"jobs.{what}",
            {"job_id": job_id},
            lambda tx, actor: done(tx, actor.tenant, platform.kinds, job_id),
        )
    found = entry(row)
    asked = what == "cancel" and found["state"] == "running"
    fields(
        {"id": found["id"], "kind": found["kind"], "state": "stopping" if asked else found["state"]}, as_json=as_json
    )


def _looking(platform: "Platform", tenant: str) -> "Callable[[Callable[[Jobs], Any]], Any]":
    from rookery.jobs.store import Jobs

    return lambda work: platform.database.direct(lambda tx: work(Jobs(tx, tenant)))


def entry(row: "Row") -> dict[str, Any]:
    """A job as programs read it: every column, times in milliseconds."""
    from rookery.jobs.tables import jobs as table

    return {name: getattr(row, name) for name in table.c.keys()}  # noqa: SIM118


def in_order(counted: dict[str, int]) -> dict[str, int]:
    """The number of jobs of every state, also where there are none."""
    return {state: counted.get(state, 0) for state in STATES}


def brief(each: dict[str, Any]) -> dict[str, Any]:
    """A job as a line of a table shows it."""
    at = each["due_ms"] if each["state"] == "waiting" else each["ended_ms"] or each["started_ms"] or each["due_ms"]
    state = "stopping" if each["state"] == "running" and each["cancel"] else each["state"]
    error = each["error"]
    return {
        **each,
        "state": state,
        "when": moment(at),
        "progress": progress(each["progress"]),
        "error": error if error is None or len(error) <= 60 else f"{error[:59]}…",
    }


def progress(told: dict[str, Any] | None) -> str | None:
    """How far a job is, such as `3/10 reading`."""
    if not told:
        return None
    done, total = told.get("done", 0), told.get("total")
    share = f"{done:g}" if total is None else f"{done:g}/{total:g}"
    return f"{share} {told.get('message') or ''}".rstrip()


def moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")


def _readable(found: dict[str, Any]) -> dict[str, Any]:
    import json

    shown = {name: moment(value) if name in _TIMES and value is not None else value for name, value in found.items()}
    shown["args"] = json.dumps(found["args"], ensure_ascii=False)
    shown["progress"] = progress(found["progress"])
    return {name.removesuffix("_ms") if name in _TIMES else name: value for name, value in shown.items()}
