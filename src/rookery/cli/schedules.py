"""`rookery schedules`: what agents do at set times, and what the owner has to agree to first."""

from typing import Any, cast

import click

from rookery.cli.options import ListByDefault, given, managing
from rookery.cli.session import call_as_owner
from rookery.cli.show import fields, listing, print_json

POLICIES = ("auto", "owner_approve", "council_approve")
EXECUTION = ["id", "status", "due", "name", "actions", "result"]
AWAITING = ["id", "due", "agent_id", "name", "asks"]


def _call(home: str | None, action: str, **arguments: Any) -> dict[str, Any]:
    return call_as_owner(home, "manage_schedule", {"action": action, **given(**arguments)})


@click.group(cls=ListByDefault)
def schedules() -> None:
    """Schedules of agents, and what awaits approval."""


@schedules.command("list")
@managing
def list_(home: str | None, as_json: bool) -> None:
    """List the schedules, those that are due next first."""
    found = _call(home, "list")["schedules"]
    shown = ["id", "status", "next_due", "due", "actions", "name"]
    listing(found, shown, as_json=as_json, empty="no schedules; make one: rookery schedules create NAME --prompt TEXT")


@schedules.command()
@click.argument("schedule")
@managing
def show(schedule: str, home: str | None, as_json: bool) -> None:
    """Show a schedule."""
    fields(_call(home, "get", schedule_id=schedule)["schedules"][0], as_json=as_json)


@schedules.command()
@click.argument("name")
@click.option("--cron", metavar="EXPRESSION", help="When, such as '0 9 * * MON-FRI' or @daily.")
@click.option("--every", type=int, metavar="MINUTES", help="Or in what interval; 5 is the shortest.")
@click.option("--timezone", metavar="ZONE", help="Of --cron, such as Europe/Berlin; UTC if absent.")
@click.option("--prompt", help="What a session of the agent is asked to do.")
@click.option("--action", "actions", multiple=True, metavar="JSON", help="An action, such as a work_task.")
@click.option("--agent", metavar="AGENT", help="Whose it is; the default one if absent.")
@click.option("--policy", type=click.Choice(POLICIES), help="Who has to agree; owner_approve if absent.")
@click.option("--max-runs", type=int, help="After so many it is completed.")
@click.option("--budget", type=float, metavar="USD", help="What the sessions of one run may cost.")
@click.option("--missed", type=click.Choice(["run_once", "skip"]), help="After a downtime; run_once if absent.")
@click.option("--description", help="What it is for.")
@managing
def create(
    name: str,
    cron: str | None,
    every: int | None,
    timezone: str | None,
    prompt: str | None,
    actions: tuple[str, ...],
    agent: str | None,
    policy: str | None,
    max_runs: int | None,
    budget: float | None,
    missed: str | None,
    description: str | None,
    home: str | None,
    as_json: bool,
) -> None:
    """Create a schedule that is active from now on."""
    made = _call(
        home,
        "create",
        name=name,
        cron_expression=cron,
        interval_minutes=every,
        timezone=timezone,
        schedule_actions=_actions(prompt, actions),
        agent_id=agent,
        approval_policy=policy,
        max_executions=max_runs,
        max_budget_per_run=budget,
        missed=missed,
        description=description,
    )
    fields(made["schedules"][0], as_json=as_json)


def _actions(prompt: str | None, given: tuple[str, ...]) -> list[dict[str, Any]]:
    import json

    found: list[dict[str, Any]] = [] if prompt is None else [{"type": "custom", "prompt": prompt}]
    for text in given:
        try:
            action: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise click.BadParameter(f"{text!r} is not JSON: {error}", param_hint="--action") from None
        if not isinstance(action, dict):
            raise click.BadParameter(f"{text!r} is no JSON object", param_hint="--action")
        found.append(cast("dict[str, Any]", action))
    return found


@schedules.command()
@click.argument("schedule")
@managing
def pause(schedule: str, home: str | None, as_json: bool) -> None:
    """Make a schedule due no more until it is resumed."""
    fields(_call(home, "pause", schedule_id=schedule)["schedules"][0], as_json=as_json)


@schedules.command()
@click.argument("schedule")
@managing
def resume(schedule: str, home: str | None, as_json: bool) -> None:
    """Make a paused schedule due again."""
    fields(_call(home, "resume", schedule_id=schedule)["schedules"][0], as_json=as_json)


@schedules.command()
@click.argument("schedule")
@managing
def delete(schedule: str, home: str | None, as_json: bool) -> None:
    """Remove a schedule with its history; what runs is stopped."""
    fields({"note": _call(home, "delete", schedule_id=schedule)["note"]}, as_json=as_json)


@schedules.command()
@click.argument("schedule", required=False)
@click.option("--execution", metavar="ID", help="Everything about this one, step by step.")
@managing
def history(schedule: str | None, execution: str | None, home: str | None, as_json: bool) -> None:
    """List the newest executions, of one schedule or of all."""
    found = _call(home, "history", schedule_id=schedule, execution_id=execution)["executions"]
    if execution is not None:
        print_json(found[0])
        return
    listing(found, EXECUTION, as_json=as_json, empty="nothing was due yet")


@schedules.command()
@managing
def pending(home: str | None, as_json: bool) -> None:
    """List the executions that wait for you to agree."""
    listing(_call(home, "list")["executions"], AWAITING, as_json=as_json, empty="nothing awaits approval")


@schedules.command()
@click.argument("execution")
@managing
def approve(execution: str, home: str | None, as_json: bool) -> None:
    """Let an execution that waits go on; the first eight characters of its id do."""
    _decided(_call(home, "approve", execution_id=execution), as_json)


@schedules.command()
@click.argument("execution")
@managing
def deny(execution: str, home: str | None, as_json: bool) -> None:
    """Do not let an execution that waits go on."""
    _decided(_call(home, "deny", execution_id=execution), as_json)


def _decided(result: dict[str, Any], as_json: bool) -> None:
    row = result["executions"][0]
    fields({name: row[name] for name in ("id", "schedule_id", "name", "status", "due")}, as_json=as_json)
