"""`rookery pause` and `rookery resume`: the kill switch of everything, of a project or of one agent."""

from typing import TYPE_CHECKING, Any

import click

from rookery.cli.options import given, managing
from rookery.cli.session import call_as_owner
from rookery.cli.show import listing, print_json

if TYPE_CHECKING:
    pass

LINE = ["scope", "target", "reason", "by", "since"]
NOTHING = "nothing is paused"
project_option = click.option("--project", metavar="SLUG", help="Only the agents in this project.")
agent_option = click.option("--agent", metavar="NAME", help="Only this agent, wherever it works.")


@click.command()
@project_option
@agent_option
@click.option("--reason", metavar="TEXT", help="Why; the agents are told.")
@click.option("--list", "only_list", is_flag=True, help="Pause nothing; show what is paused.")
@managing
def pause(
    project: str | None, agent: str | None, reason: str | None, only_list: bool, home: str | None, as_json: bool
) -> None:
    """Stop all agents, or those of a project, or one, until they are resumed.

    Those at work are told and then stopped, nothing new is started, and sessions of agents can only look on. People
    are never paused.
    """
    from rookery.lifecycle.pausing import list_pauses, pause_agents

    if only_list:
        if project or agent or reason:
            raise click.UsageError("--list shows everything; it takes no other option")
        listing(call_as_owner(home, list_pauses, {})["pauses"], LINE, as_json=as_json, empty=NOTHING)
        return
    told = call_as_owner(home, pause_agents, given(project=project, agent=agent, reason=reason))
    _show(told, "paused", "paused already", _part(project, agent), as_json=as_json)


@click.command()
@project_option
@agent_option
@managing
def resume(project: str | None, agent: str | None, home: str | None, as_json: bool) -> None:
    """Let agents go on that were paused; whatever else is paused stays so.

    Without an option the pause of everything is taken back, and those of single projects and agents are not.
    """
    from rookery.lifecycle.pausing import resume_agents

    told = call_as_owner(home, resume_agents, given(project=project, agent=agent))
    _show(told, "resumed", "not paused", _part(project, agent), as_json=as_json)


def _part(project: str | None, agent: str | None) -> str:
    return f"the project {project}" if project else f"the agent {agent}" if agent else "everything"


def _show(told: dict[str, Any], done: str, was: str, part: str, *, as_json: bool) -> None:
    if as_json:
        print_json(told)
        return
    click.echo(f"{part} is {done if told['changed'] else was}")
    listing(told["pauses"], LINE, as_json=False, empty=NOTHING)
