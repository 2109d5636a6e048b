"""`rookery explain`: every layer's verdict on one tool, for any session."""

from typing import TYPE_CHECKING, Any

import click

from rookery.cli.session import Bound, actor_of, flag_options, flags_of, opened
from rookery.cli.show import print_json, table

if TYPE_CHECKING:
    from rookery.core.actor import Actor
    from rookery.core.tool import Tool


@click.command()
@click.argument("tool")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@flag_options(leave_out=("--direct",))
def explain(tool: str, as_json: bool, **bound: Bound) -> None:
    """Say why a session has a tool or not, layer by layer.

    The options are those of `rookery stdio`. The first layer that does not agree decides; those after it are shown
    as well.
    """
    from rookery.identity.critical import lost_tools

    flags = flags_of(bound)
    with opened(flags) as platform:
        found = platform.registry.require(tool)
        actor = actor_of(platform, flags)
        told = {**explanation(actor, found), "warnings": lost_tools(actor, platform.registry)}
    if as_json:
        print_json(told)
    else:
        _print(actor, told)


def explanation(actor: "Actor", tool: "Tool") -> dict[str, Any]:
    """The decision and what each layer says by itself, in order."""
    from rookery.core import decide

    decision = decide.decide(actor, tool)
    return {
        "tool": tool.name,
        "outcome": decision.outcome,
        "layer": decision.layer,
        "reason": decision.reason,
        "hint": decision.hint,
        "layers": [verdict._asdict() for verdict in decide.explain(actor, tool)],
    }


def _print(actor: "Actor", told: dict[str, Any]) -> None:
    who = "the owner" if actor.kind == "human" else f"the agent {actor.agent_name}"
    click.echo(f"{told['tool']} for {who}" + (f" as {actor.profile}" if actor.profile else ""))
    rows = [[verdict["layer"], verdict["outcome"], verdict["reason"]] for verdict in told["layers"]]
    table(["layer", "verdict", "reason"], rows, empty="")
    by = "" if told["outcome"] == "allow" else f" by {told['layer']}"
    click.echo(f"decision: {told['outcome']}{by}: {told['reason']}")
    if told["hint"]:
        click.echo(f"hint: {told['hint']}")
    for warning in told["warnings"]:
        click.echo(f"warning: {warning}")
